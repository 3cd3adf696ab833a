import { errorForLog, isRefusal, type Refusal } from '../../kernel/refusal.ts';
import { type StageName, stageNames, stageOf } from '../../kernel/stages.ts';
import { publicHooks } from '../../plugins-sdk/hooks/public-hooks.ts';
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
  /** The last call of each inner function of the plugin. */
  readonly calls: Map<string, InnerCall>;
  /** How the request ended, unless it was answered. */
  refusal: Refusal | undefined;
}

/** What came of an inner function. */
export interface InnerCall {
  readonly given: unknown;
  value?: unknown;
  thrown?: { readonly error: unknown };
}

const RAW = 'not run: a raw answer skips it; record endpoint.encoding, or data';
/** Why a stage of the plugin was not asked, where a record decides that. */
const UNASKED: Partial<Readonly<Record<StageName, string>>> = {
  parseBody: 'not run: parameters are recorded as they were read',
  authenticate: 'not run: record endpoint.auth with a type of the plugin',
  price: "not run: a test asks for it, by harness.request().stage('price', …)",
  present: 'not run: record endpoint.mode with a mode of the plugin',
  encrypt: RAW,
};

/** What the service itself refuses, behind the plugin's functions of a stage. */
const OWN: Partial<Readonly<Record<StageName, { readonly own: string; readonly why?: string }>>> = {
  validate: { own: '(encoding)' },
  onAfterApiCall: { own: '(status)', why: ', for an error status is never signed' },
  encode: { own: '(encoding)' },
};

/** What comes when the outcome of a request is known. */
const CONCLUSION: readonly StageName[] = ['concluded', 'respond', 'onResponseSent', 'onError'];

/** Where a request may be refused, in order: the plugin's functions, and between them what the service itself refuses. */
const PASSAGE = stageNames
  .filter((stage) => stage !== 'route' && !CONCLUSION.includes(stage))
  .flatMap((stage): { readonly stage: StageName; readonly own?: string; readonly why?: string }[] => {
    const own = OWN[stage];
    return own === undefined ? [{ stage }] : [{ stage }, { stage, ...own }];
  });

/** What is to be told of a request, step by step. @param hooks that the plugin has. */
export function stepsOf(trace: Trace, record: RecordedRequest, hooks: readonly string[]): Step[] {
  return [...passage(trace, record, hooks), ...conclusion(trace, record, hooks)];
}

/** @param isAfterEnd whether the request was refused before. */
function innerStep(stage: StageName, { calls, faults, spent, refusal }: Trace, isAfterEnd: boolean): Step {
  const call = calls.get(stage);
  if (call === undefined) {
    const text = isAfterEnd ? 'not reached' : (UNASKED[stage] ?? 'not asked');
    return { name: stage, text, fault: false };
  }
  const told = (text: string, fault = false) => ({ name: stage, spent: spent.get(stage) ?? 0, text, fault });
  const { thrown } = call;
  if (isRefusal(thrown?.error)) return told(`refused: ${line(thrown.error)}`);
  const reason = faults.get(stage) || (thrown && errorForLog(thrown.error)) || refusal?.reason;
  if (faults.has(stage)) return told(`failed: ${reasonOf(reason)}`, true);
  return told(outcomeOf(stage, call));
}

function outcomeOf(stage: StageName, { given, value }: InnerCall): string {
  const { kind } = stageOf(stage);
  if (kind === 'watch') return 'done';
  if (value === undefined) return 'passed';
  if (stage === 'vary') return `varies by ${JSON.stringify(value)}`;
  if (kind === 'gate') return 'allowed';
  if (kind !== 'map') return 'answered';
  // A text has no member to be named.
  const changes = typeof given === 'string' ? difference({ data: given }, { data: value }) : difference(given, value);
  return changes === '' ? 'passed' : `changed ${changes}`;
}

function passage(trace: Trace, record: RecordedRequest, hooks: readonly string[]): Step[] {
  const { refusal, faults, standIns, spent, calls } = trace;
  // Of a stage where both may refuse, the plugin did when it rejects or fails.
  const isHooks = (stage: string) =>
    stage === 'onHttpRequest' || faults.has(stage) || calls.get(stage)?.thrown !== undefined;
  const end = PASSAGE.findIndex(({ stage, own }) => refusal?.stage === stage && isHooks(stage) === (own === undefined));
  return PASSAGE.flatMap(({ stage, own, why = '' }, index): Step[] => {
    if (own !== undefined) {
      const isHere = index === end && refusal !== undefined;
      return isHere ? [{ name: own, text: `refused: ${line(refusal)}${why}`, fault: own === '(encoding)' }] : [];
    }
    if (!hooks.includes(stage)) return [];
    if (!Object.hasOwn(publicHooks, stage)) return [innerStep(stage, trace, end >= 0 && index > end)];
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

function conclusion(trace: Trace, { error }: RecordedRequest, hooks: readonly string[]): Step[] {
  const { refusal, faults, spent } = trace;
  const { status, message } = refusal ?? { status: 502, message: 'API call failed', ...error };
  return CONCLUSION.flatMap((name): Step[] => {
    if (!hooks.includes(name)) return [];
    if (!Object.hasOwn(publicHooks, name)) return [innerStep(name, trace, false)];
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
