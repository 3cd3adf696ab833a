import { closedObject, optionalKey } from '../../plugins-sdk/config.ts';
import {
  clientName,
  definePlugin,
  type Exchange,
  type Services,
  type SignedResponse,
  Type,
} from '../../plugins-sdk/index.ts';
import { signedFacts } from '../../plugins-sdk/observe.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { payment } from '../shared/payment-mark.ts';
import { AuditFile } from './file.ts';

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
/** Answers that have a line already; a cached answer is given again, also after a reload. */
const recorded = new WeakSet<SignedResponse>();

const kept = new StateKey<AuditFile>('audit record');

function fileFor({ states, log, meters }: Services, path: string, sync: boolean): AuditFile {
  const initial = ['written', 'lost'].map((outcome) => ({ outcome }));
  const help = 'Lines of the audit record: written, or lost since they could not be written in time';
  const counted = meters.counter({ name: 'audit_lines_total', help, labels: ['outcome'], initial });
  const file = states.keep(kept, `${path} ${sync}`, () => new AuditFile(path, sync, log, counted));
  const failing = { name: 'audit_failing', help: '1 while the audit record cannot be written, else 0' };
  meters.gauge({ ...failing, across: 'max' }, () => Number(file.isFailing));
  return file;
}

/**
 * Returns the members of an answer's line; undefined if the answer is not the pipeline's.
 * @param isGiven whether the client gets the answer; otherwise it was signed and then withheld.
 */
function lineOf(answer: SignedResponse, exchange: Exchange, isGiven: boolean) {
  const facts = signedFacts(answer);
  if (facts === undefined) return undefined;
  const { isMadeHere, endpointId, requestHash, digest, timestamp, signers } = facts;
  const { requestId, endpoint } = exchange;
  const [signer, ...others] = signers;
  const isAgain = !isMadeHere || recorded.has(answer);
  recorded.add(answer);
  return {
    ...{ requestId, endpoint: `${endpoint.api}/${endpoint.name}` },
    ...{ endpointId, requestHash, digest, timestamp, signer },
    alsoSignedBy: others.length === 0 ? undefined : others,
    client: clientName.get(exchange),
    payment: payment.get(exchange),
    again: isAgain || undefined,
    given: isGiven && undefined,
  };
}

/** Records a line for each signed answer of a request in a file, which is written after the requests. */
export const audit = definePlugin({
  name: 'audit',
  keys: [auditKey],
  changesAnswers: false,
  setup(services) {
    const settings = auditKey.in(services.config);
    if (settings === undefined) return {};
    const { path, values = false, sync = false } = settings;
    const file = fileFor(services, services.path(path), sync);
    const record = (answer: SignedResponse, exchange: Exchange, isGiven: boolean) => {
      const line = lineOf(answer, exchange, isGiven);
      if (line === undefined) return;
      const json = JSON.stringify({ time: new Date(services.now()).toISOString(), ...line });
      file.add(values ? `${json.slice(0, -1)},"answer":${answer.json}}` : json);
    };
    return {
      start: () => file.start(),
      hooks: {
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
      },
    };
  },
});
