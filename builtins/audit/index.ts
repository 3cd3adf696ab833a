import { error } from '../../plugins-sdk/checks.ts';
import { optionalKey } from '../../plugins-sdk/config-key.ts';
import {
  type CheckContext,
  ContextKey,
  definePlugin,
  type Exchange,
  type Finding,
  type Services,
  type SignedResponse,
  StateKey,
  type Static,
  type Taps,
  Type,
} from '../../plugins-sdk/index.ts';
import { stateKey } from '../../plugins-sdk/keys.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { lineOf } from './line.ts';
import { FIELD, isForeign, RollingFile } from './rolling-file.ts';
import { Writer } from './writer.ts';

const MAX_SIZE = 100 * 1024 * 1024;
const KEEP = 365;

const AuditSchema = closedObject(
  {
    path: Type.String({
      pattern: '[^/]$',
      description: 'a file of JSON lines, relative to the config file; made if there is none',
    }),
    values: Type.Optional(
      Type.Boolean({ description: 'Records each answer whole, with its value and signature; default false' }),
    ),
    sync: Type.Optional(
      Type.Boolean({ description: 'Has the disk confirm each batch of lines (fsync); default false' }),
    ),
    maxSize: Type.Optional(
      Type.Integer({
        ...{ minimum: 1000, maximum: 1e12 },
        description: `Bytes from which on a new file is begun, as with each day; default ${MAX_SIZE}`,
      }),
    ),
    keep: Type.Optional(
      Type.Integer({
        ...{ minimum: 1, maximum: 1_000_000 },
        description: `Former files that are kept; default ${KEEP}`,
      }),
    ),
  },
  'Records what was signed, for whom; default none',
);
const auditKey = optionalKey('settings', 'audit', AuditSchema);

/** Answers that a request came to, and whether its outcome is known. */
interface Passed {
  readonly exchange: Exchange;
  readonly answers: Set<SignedResponse>;
  isConcluded: boolean;
}

const passed = new ContextKey<Passed>('audited answers');

/** A further run of a request has the context values of the run before. */
function passedBy(exchange: Exchange): Passed {
  const known = passed.get(exchange);
  if (known?.exchange === exchange) return known;
  const made: Passed = { exchange, answers: new Set(), isConcluded: false };
  passed.set(exchange, made);
  return made;
}

/** @param record takes each answer that a request has come to, once. */
function hooksFor(record: (answer: SignedResponse, exchange: Exchange, isGiven: boolean) => void): Taps {
  return {
    answer: async (_, exchange, { next }) => {
      const answer = await next();
      const { answers, isConcluded } = passedBy(exchange);
      // Its client has left, or its mode has given up.
      if (isConcluded) record(answer, exchange, false);
      else answers.add(answer);
      return answer;
    },
    concluded: (outcome, exchange) => {
      const own = passedBy(exchange);
      const given = outcome.kind === 'signed' ? outcome.response : undefined;
      if (given !== undefined) own.answers.add(given);
      for (const answer of own.answers) record(answer, exchange, answer === given);
      own.isConcluded = true;
    },
  };
}

const kept = new StateKey<Writer>('audit record');

function writerFor({ states, log, now, meters }: Services, path: string, settings: Static<typeof AuditSchema>): Writer {
  const { sync = false, maxSize = MAX_SIZE, keep = KEEP } = settings;
  const initial = ['written', 'lost'].map((outcome) => ({ outcome }));
  const help = 'Lines of the audit record: written, or lost since they could not be written in time';
  const counted = meters.counter({ name: 'audit_lines_total', help, labels: ['outcome'], initial });
  const options = { path, maxSize, keep, sync };
  const make = () => new Writer({ file: new RollingFile({ ...options, log, now }), path, log, counted });
  const writer = states.keep(kept, JSON.stringify(options), make);
  const failing = { name: 'audit_failing', help: '1 while the audit record cannot be written, else 0' };
  meters.gauge({ ...failing, across: 'max' }, () => Number(writer.isFailing));
  return writer;
}

function check({ config, path: absolute }: CheckContext): Finding[] {
  const { path } = auditKey.in(config) ?? {};
  if (path === undefined) return [];
  const state = stateKey.in(config);
  if (isRecord(state) && typeof state.path === 'string' && absolute(path) === absolute(state.path))
    return [error(FIELD, 'is the file of settings.state.path: choose another one')];
  return isForeign(absolute(path))
    ? [error(FIELD, 'is a file with something else in it, which does not begin with "{": choose another one')]
    : [];
}

/** A line for each signed answer that a request came to, in a file that it is written to behind the requests. */
export const audit = definePlugin({
  name: 'audit',
  keys: [auditKey],
  check,
  setup(services) {
    const { config, now } = services;
    const settings = auditKey.in(config);
    if (settings === undefined) return {};
    const writer = writerFor(services, services.path(settings.path), settings);
    const { values: withAnswer = false } = settings;
    return {
      start: () => writer.start(),
      hooks: hooksFor((answer, exchange, isGiven) => {
        const line = lineOf(answer, exchange, { now: now(), isGiven, withAnswer });
        if (line !== undefined) writer.add(line);
      }),
    };
  },
});
