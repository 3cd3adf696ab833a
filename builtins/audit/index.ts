import { closedObject, optionalKey } from '../../plugins-sdk/config.ts';
import {
  definePlugin,
  type Exchange,
  type Services,
  type SignedResponse,
  type Taps,
  Type,
} from '../../plugins-sdk/index.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { AuditFile } from './file.ts';
import { lineOf } from './line.ts';

const AuditSchema = closedObject(
  {
    path: Type.String({
      pattern: '[^/]$',
      description: 'a file of JSON lines, relative to the config file; made if there is none',
    }),
    values: Type.Optional(Type.Boolean({ description: 'Records whole answers; default false' })),
    sync: Type.Optional(Type.Boolean({ description: 'Calls fsync after each batch; default false' })),
  },
  'Records each signed answer; default none',
);
const auditKey = optionalKey('settings', 'audit', AuditSchema);

/** Answers of requests whose outcome is not known yet. */
const passed = new WeakMap<Exchange, Set<SignedResponse>>();

/** Makes the hooks. @param record called once for each answer that a request got. */
function hooksFor(record: (answer: SignedResponse, exchange: Exchange, isGiven: boolean) => void): Taps {
  return {
    answer: async (_, exchange, { next }) => {
      const answer = await next();
      if (exchange.outcome === undefined) passed.set(exchange, new Set(passed.get(exchange)).add(answer));
      // The client has left, or the mode has given up.
      else record(answer, exchange, false);
      return answer;
    },
    concluded: (outcome, exchange) => {
      const given = outcome.kind === 'signed' ? outcome.response : undefined;
      const answers = new Set(passed.get(exchange));
      if (given !== undefined) answers.add(given);
      for (const answer of answers) record(answer, exchange, answer === given);
    },
  };
}

const kept = new StateKey<AuditFile>('audit record');

function fileFor({ states, log, meters }: Services, path: string, sync: boolean): AuditFile {
  const initial = ['written', 'lost'].map((outcome) => ({ outcome }));
  const help = 'Lines of the audit record: written, or lost since they could not be written in time';
  const counted = meters.counter({ name: 'audit_lines_total', help, labels: ['outcome'], initial });
  const file = states.keep(kept, `${path} ${sync}`, () => new AuditFile({ path, sync, log, counted }));
  const failing = { name: 'audit_failing', help: '1 while the audit record cannot be written, else 0' };
  meters.gauge({ ...failing, across: 'max' }, () => Number(file.isFailing));
  return file;
}

/** Records a line for each signed answer of a request in a file, which is written after the requests. */
export const audit = definePlugin({
  name: 'audit',
  keys: [auditKey],
  changesAnswers: false,
  setup(services) {
    const { config, now } = services;
    const settings = auditKey.in(config);
    if (settings === undefined) return {};
    const { path, values: withAnswer = false, sync = false } = settings;
    const file = fileFor(services, services.path(path), sync);
    return {
      start: () => file.start(),
      hooks: hooksFor((answer, exchange, isGiven) => {
        const line = lineOf(answer, exchange, { now: now(), isGiven, withAnswer });
        if (line !== undefined) file.add(line);
      }),
    };
  },
});
