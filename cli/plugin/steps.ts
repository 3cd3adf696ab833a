import type { Refusal } from '../../kernel/refusal.ts';
import { publicHooks } from '../../plugins-sdk/index.ts';
import { difference } from './difference.ts';
import type { RecordedRequest } from './record.ts';
import type { StandIns } from './stand-ins.ts';

/** What came of one hook, or of what stands between two hooks. */
export interface Step {
  readonly name: string;
  /** Milliseconds; absent for what was not called. */
  readonly spent?: number;
  readonly text: string;
  /** Whether the plugin failed here, or nothing could be signed. */
  readonly fault: boolean;
}

/** What was seen of a request on its way. */
export interface Trace {
  readonly standIns: StandIns;
  /** Milliseconds by stage. */
  readonly spent: Map<string, number>;
  /** Stages in which the plugin failed; with the reason, where the request went on. */
  readonly faults: Map<string, string>;
  /** How the request ended, unless it was answered. */
  refusal: Refusal | undefined;
}

const RAW = 'not run: a raw answer skips it; record endpoint.encoding, or data';
const INNER = 'not run: test inner stages with signed-data-proxy/plugins-sdk/testing';

/** Where a request may be refused, in order: hooks, and between them what the service itself refuses. */
const PASSAGE: readonly { readonly stage: string; readonly own?: string; readonly why?: string }[] = [
  { stage: 'onHttpRequest' },
  { stage: 'validate', own: '(encoding)' },
  { stage: 'onBeforeApiCall' },
  { stage: 'onAfterApiCall' },
  { stage: 'onAfterApiCall', own: '(status)', why: ', for an error status is never signed' },
  { stage: 'encode', own: '(encoding)' },
  { stage: 'onBeforeSign' },
];

/** What is to be told of a request, step by step. @param hooks that the plugin has. */
export function stepsOf(trace: Trace, record: RecordedRequest, hooks: readonly string[]): Step[] {
  const inner = hooks.filter((hook) => !Object.hasOwn(publicHooks, hook));
  return [
    ...passage(trace, record, hooks),
    ...conclusion(trace, record, hooks),
    ...inner.map((name) => ({ name, text: INNER, fault: false })),
  ];
}

function passage(trace: Trace, record: RecordedRequest, hooks: readonly string[]): Step[] {
  const { refusal, faults, standIns, spent } = trace;
  // Of a stage where both may refuse, the plugin did when it rejects or fails.
  const isHooks = (stage: string) => stage === 'onHttpRequest' || faults.has(stage);
  const end = PASSAGE.findIndex(({ stage, own }) => refusal?.stage === stage && isHooks(stage) === (own === undefined));
  return PASSAGE.flatMap(({ stage, own, why = '' }, index): Step[] => {
    if (own !== undefined) {
      const isHere = index === end && refusal !== undefined;
      return isHere ? [{ name: own, text: `refused: ${line(refusal)}${why}`, fault: own === '(encoding)' }] : [];
    }
    if (!hooks.includes(stage)) return [];
    const told = (text: string, fault = false) => [{ name: stage, spent: spent.get(stage) ?? 0, text, fault }];
    if (index === end && refusal !== undefined) {
      if (!faults.has(stage)) return told(`rejected: ${line(refusal)}`);
      return told(`dropped: ${line(refusal)}: ${reasonOf(refusal.reason)}`, true);
    }
    if (end >= 0 && index > end) return [{ name: stage, text: 'not reached', fault: false }];
    if (stage === 'onBeforeSign' && standIns.encoded === undefined) return [{ name: stage, text: RAW, fault: false }];
    const changes = changesOf(stage, standIns, record);
    return told(changes === '' ? 'passed' : `changed ${changes}`);
  });
}

function changesOf(stage: string, { given, asked, answered, encoded, signed }: StandIns, record: RecordedRequest) {
  if (stage === 'onBeforeApiCall') return difference(record.parameters ?? {}, asked);
  if (stage === 'onAfterApiCall') return difference({ data: given.data, status: given.status }, answered);
  return stage === 'onBeforeSign' ? difference({ data: encoded }, { data: signed }) : '';
}

function conclusion({ refusal, faults, spent }: Trace, { error }: RecordedRequest, hooks: readonly string[]): Step[] {
  const { status, message } = refusal ?? { status: 502, message: 'API call failed', ...error };
  return ['onResponseSent', 'onError'].flatMap((name): Step[] => {
    if (!hooks.includes(name)) return [];
    const milliseconds = spent.get(name);
    if (milliseconds === undefined) return [{ name, text: 'not reached', fault: false }];
    const given = name === 'onError' ? ` with ${status} ${message}` : '';
    const reason = faults.get(name);
    const text = reason === undefined ? `done${given}` : `failed${given}: ${reasonOf(reason)}`;
    return [{ name, spent: milliseconds, text, fault: reason !== undefined }];
  });
}

function line({ status, message }: Refusal): string {
  return `${status} ${message}`;
}

/** The first line, with the place in the plugin where it was thrown, if it was. */
function reasonOf(detail = ''): string {
  const [message = '', ...stack] = detail.split('\n');
  const place = stack.find((frame) => /^ +at /.test(frame));
  return place === undefined ? message : `${message} (${place.trim()})`;
}
