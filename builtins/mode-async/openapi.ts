import { stateKey } from '../../plugins-sdk/config.ts';
import {
  type DescribedMode,
  type DescribedRoute,
  type DescribedService,
  internalError,
  type Named,
  noStore,
  type OpenApiPart,
  objectSchema,
  refTo,
  textSchema,
  withMembers,
} from '../../plugins-sdk/openapi.ts';

const schema = (name: string) => refTo('schemas', name);
const requestId = { ...schema('Bytes32'), description: 'Whoever knows it can read the answer' };
const pollUrl = textSchema('^/requests/0x[0-9a-f]{64}$', 'Where to poll');

function schemas(answers: Named): Named {
  const complete = Object.entries(answers).map(([kind, answer]) => [
    `Async${kind}Answer`,
    withMembers(answer, { requestId, status: { const: 'complete' }, pollUrl }),
  ]);
  const names = ['AsyncRunning', ...complete.map(([name]) => String(name)), 'AsyncFailure'];
  return {
    AsyncSubmission: objectSchema('The request was accepted', { requestId, status: { const: 'pending' }, pollUrl }),
    AsyncRecord: { description: 'How far a request is', oneOf: names.map(schema) },
    AsyncRunning: objectSchema('Poll again', { requestId, status: { enum: ['pending', 'processing'] }, pollUrl }),
    ...Object.fromEntries(complete),
    AsyncFailure: objectSchema('There will be no answer', {
      requestId,
      status: { const: 'failed' },
      pollUrl,
      error: { type: 'string', description: 'The text that a synchronous endpoint would have answered' },
    }),
  };
}

const mode: DescribedMode = {
  title: 'accepted at once, then asked for again until it is done',
  early: true,
  schemas,
  responses: (_, text) => ({
    202: {
      description: `Poll for the answer: ${text}`,
      schema: schema('AsyncSubmission'),
      headers: noStore,
      links: { poll: { operationId: 'pollRequest', parameters: { requestId: '$response.body#/requestId' } } },
    },
    503: {
      description: 'Too many requests are unfinished or unread',
      errors: ['Service Unavailable'],
      headers: noStore,
    },
  }),
};

const away = {
  description: 'Where requests are kept is away: poll again',
  errors: ['Service Unavailable'],
  headers: noStore,
};

const polling = (isKeptHere: boolean): DescribedRoute => ({
  method: 'GET',
  path: '/requests/{requestId}',
  admit: true,
  operation: {
    operationId: 'pollRequest',
    summary: 'The answer of an async endpoint, once it is there',
    description: 'An answer is kept for a minute, a request that is not finished for ten.',
    parameters: [{ name: 'requestId', in: 'path', required: true, schema: schema('Bytes32') }],
  },
  responses: {
    200: { description: 'How far the request is', schema: schema('AsyncRecord'), headers: noStore },
    404: { description: 'No such request, or no longer', errors: ['Request not found'], headers: noStore },
    500: internalError,
    ...(isKeptHere ? {} : { 503: away }),
  },
});

/** Describes the mode, and the route if an endpoint is asynchronous. */
export function describeAsync({ config, endpoints }: DescribedService): OpenApiPart {
  const isKeptHere = typeof (stateKey.in(config) ?? 'memory') === 'string';
  const isUsed = endpoints.some((endpoint) => endpoint.mode === 'async');
  return { modes: { async: mode }, routes: isUsed ? [polling(isKeptHere)] : [] };
}
