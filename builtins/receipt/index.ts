import { receiptBeside } from '../../lib/eth/statements.ts';
import {
  type CheckContext,
  declaredParameters,
  type EndpointDraft,
  error,
  type Finding,
  isCovered,
  receiptKey,
  reservedParameters,
} from '../../plugins-sdk/config.ts';
import { AskedQuestion, definePlugin, type Endpoint } from '../../plugins-sdk/index.ts';
import { namesOf } from '../shared/described.ts';
import { coveredNames } from '../shared/path-parameters.ts';
import { describeReceipts } from './openapi.ts';

/** Refuses defaults of parameters that share a name. They share the client's value only, so two requests could have one hash. */
function check(endpoint: EndpointDraft, context: CheckContext): Finding[] {
  if (receiptKey.of(endpoint) !== true) return [];
  const covered = declaredParameters(endpoint, context).filter(isCovered);
  return covered.flatMap(({ at, name, default: fallback }) => {
    if (fallback === undefined || covered.filter((other) => other.name === name).length === 1) return [];
    const message = `another parameter is named "${name}": a receipt cannot tell whether this was sent`;
    return [error(`${at}.default`, message)];
  });
}

/** Recommends receipts where clients choose parameters, and the operator has not decided for or against. */
function recommend(endpoints: readonly Endpoint[]): string | undefined {
  const open = endpoints.filter(
    (endpoint) =>
      receiptKey.of(endpoint) === undefined && coveredNames(endpoint).length + reservedParameters(endpoint).length > 0,
  );
  if (open.length === 0) return undefined;
  return (
    `receipt: true for ${namesOf(open)}: the parameters of clients are not in the signature, so that an answer ` +
    'to one request passes as one to another; a receipt tells them apart (receipt: false: not wanted)'
  );
}

/** Adds a receipt of the parameters to each answer: a statement beside the answer, which the same signer signs. */
export const receipt = definePlugin({
  name: 'receipt',
  keys: [receiptKey],
  check: (context) => context.endpoints.flatMap((endpoint) => check(endpoint, context)),
  recommend,
  openapi: ({ endpoints }) => describeReceipts(endpoints),
  setup({ endpoints }) {
    if (!endpoints.some((endpoint) => receiptKey.of(endpoint))) return {};
    return {
      hooks: {
        statements: (others, request) => {
          const { question } = request;
          const asked = AskedQuestion.is(question) ? question.requestHash : undefined;
          return asked && [...others, receiptBeside(request, asked)];
        },
      },
    };
  },
});
