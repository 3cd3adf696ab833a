import type { Endpoint, Refusal } from '../../plugins-sdk/index.ts';
import {
  type DescribedRoute,
  internalError,
  noStore,
  objectSchema,
  type Responses,
  refTo,
  textSchema,
} from '../../plugins-sdk/openapi.ts';
import { isFit, isOpen } from './endpoint.ts';
import { refusals } from './refusals.ts';

const sender = textSchema('^0x[0-9a-fA-F]{40}$', 'The contract that asks');
const data = textSchema(
  '^0x([0-9a-fA-F]{2})*$',
  'The call `ask(bytes32 endpointId, string parameters)`, ABI-encoded; the parameters are the text of a JSON object',
);
const answer =
  '`abi.encode(address node, bytes32 endpointId, uint256 timestamp, bytes data, bytes signature, bytes receiptSignature)`; ' +
  'the last one is empty on endpoints without receipts';

const description =
  'Asks an endpoint in the name of a contract, as a client without a key would: the same limits count, and the same ' +
  'refusals. After a 5xx another gateway may answer.';

/** Lists the names of endpoints for a sentence. */
function namesOf(endpoints: readonly Endpoint[]): string {
  return endpoints.map(({ api, name }) => `\`${api}/${name}\``).join(', ') || 'none';
}

const texts = (...made: readonly (() => Refusal)[]) => made.map((make) => make().message);

function responses(endpoints: readonly Endpoint[]): Responses {
  const { body, selector, closed, ...others } = refusals;
  const keyed = endpoints.filter((endpoint) => !isOpen(endpoint));
  return {
    200: {
      description: `Contracts can ask: ${namesOf(endpoints.filter((endpoint) => isOpen(endpoint) && isFit(endpoint)))}`,
      headers: noStore,
      schema: objectSchema('An answer', { data: { ...refTo('schemas', 'Bytes'), description: answer } }),
    },
    400: { description: 'The request is wrong', errors: texts(body, ...Object.values(others)) },
    403: {
      description: `The endpoint needs a key or a payment, even of a client that sends one: ${namesOf(keyed)}`,
      errors: texts(closed),
    },
    404: { description: 'Nothing of that name is here', errors: ['Endpoint not found', ...texts(selector)] },
    500: internalError,
    502: { description: 'The endpoint has no answer', errors: ['API call failed', 'No value found at path: <path>'] },
    503: {
      description: 'A limit is full, or something refused that another gateway may not refuse',
      errors: ['Too Many Requests', 'Server busy'],
    },
  };
}

/** Describes the routes of ERC-3668. */
export function describedRoutes(endpoints: readonly Endpoint[]): readonly DescribedRoute[] {
  const common = { admit: false, responses: responses(endpoints) };
  const path = Object.entries({ sender, data }).map(([name, schema]) => ({ name, in: 'path', required: true, schema }));
  const schema = objectSchema('A question', { data, sender });
  const requestBody = { required: true, content: { 'application/json': { schema } } };
  const summary = 'The question of a contract (ERC-3668)';
  return [
    {
      ...common,
      method: 'GET',
      path: '/ccip/{sender}/{data}.json',
      operation: { operationId: 'ccipReadGet', summary, description, parameters: path },
    },
    {
      ...{ ...common, method: 'POST', path: '/ccip' },
      operation: { operationId: 'ccipRead', summary: `${summary}, of any length`, description, requestBody },
      responses: { ...common.responses, 413: { errors: ['Request body too large'] } },
    },
  ];
}
