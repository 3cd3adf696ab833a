import { components, errorResponse, jsonResponse, type Members, nameOf, noStore, refTo } from './openapi-components.ts';
import type { PublicEndpoint, PublicParameter, ReservedParameter } from './public-endpoint.ts';

/** What a service says of itself to its clients. */
export interface OpenApiSource {
  /** Version of the described API: the `version` of the configuration. */
  readonly version: string;
  readonly endpoints: readonly PublicEndpoint[];
}

/**
 * The OpenAPI 3.1 document of a service. It holds nothing but what {@link PublicEndpoint} does and what is the same for
 * every service.
 */
export function openApiDocument({ version, endpoints }: OpenApiSource): Members {
  const names = operationNames(endpoints);
  const operations = endpoints.map((endpoint, index) => [
    `/endpoints/${endpoint.id}`,
    { post: operation(endpoint, names[index] ?? '') },
  ]);
  return {
    openapi: '3.1.0',
    info: { title: 'Signed-data proxy', version, description: ABOUT },
    servers: [{ url: '/' }],
    tags: [...new Set(endpoints.map(({ api }) => api))].map((name) => ({ name })),
    paths: {
      ...Object.fromEntries(operations),
      ...(endpoints.some(({ mode }) => mode === 'async') ? { '/requests/{requestId}': { get: polling } } : {}),
      '/health': { get: health },
    },
    components: { ...components, securitySchemes: securitySchemes(endpoints) },
  };
}

const ABOUT =
  'Calls upstream APIs and signs what they answer. An endpoint is asked at `POST /endpoints/{endpointId}`; its ID, a hash ' +
  'of its specification, stands in its path below. Answers are signed by `node`, which `GET /health` names: pin it.';

/** `<api>_<endpoint>`, with the endpoint's ID where that is not unique. */
function operationNames(endpoints: readonly PublicEndpoint[]): readonly string[] {
  const names = endpoints.map(({ api, name }) => `${nameOf(api)}_${nameOf(name)}`);
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return names.map((name, index) => (counts.get(name) === 1 ? name : `${name}_${endpoints[index]?.id}`));
}

function operation(endpoint: PublicEndpoint, operationId: string): Members {
  const { api, name, description } = endpoint;
  return {
    operationId,
    summary: `${api}/${name}`,
    ...(description === undefined ? {} : { description }),
    tags: [api],
    security: [...new Set(endpoint.auth)].map((type) => (type === FREE ? {} : { [schemeName(type)]: [] })),
    requestBody: { required: true, content: { 'application/json': { schema: requestSchema(endpoint) } } },
    responses: responsesOf(endpoint),
  };
}

function requestSchema({ parameters, reserved }: PublicEndpoint): Members {
  const required = [...parameters.filter((parameter) => parameter.required).map(({ name }) => name), ...reserved];
  const properties = Object.fromEntries([
    ...parameters.map((parameter) => [parameter.name, parameterSchema(parameter)]),
    ...reserved.map((name) => [name, reservedSchemas[name]]),
  ]);
  const inner = {
    type: 'object',
    description: 'Parameters that are not listed are ignored',
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
    properties,
    additionalProperties: true,
  };
  return {
    type: 'object',
    ...(required.length === 0 ? {} : { required: ['parameters'] }),
    properties: { parameters: inner },
  };
}

function parameterSchema({ in: place, default: fallback, description }: PublicParameter): Members {
  return {
    ...(place === 'body' ? {} : { type: ['string', 'number', 'boolean'] }),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(description === undefined ? {} : { description }),
  };
}

const TYPES = ['int256', 'uint256', 'bool', 'bytes32', 'address', 'string', 'bytes'];
const LONGEST = 1024;

const reservedSchemas: Readonly<Record<ReservedParameter, Members>> = {
  _type: {
    description: 'ABI type of the answer, or a comma-separated list of them',
    type: 'string',
    maxLength: LONGEST,
    anyOf: [{ enum: TYPES }, { pattern: `^(${TYPES.join('|')})( *, *(${TYPES.join('|')}))+$` }],
  },
  _path: {
    description: 'JSONPath of the value in the upstream answer, or a comma-separated list of them',
    type: 'string',
    minLength: 1,
    maxLength: LONGEST,
  },
  _times: {
    description: 'Multiplier of an integer, such as 1e18, or a comma-separated list of them; 1 changes nothing',
    type: ['string', 'number'],
    maxLength: LONGEST,
  },
};

const FREE = 'free';
const KNOWN_SCHEMES: Readonly<Record<string, Members>> = {
  apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'A key that the operator gave you' },
  x402: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Payment-Proof',
    description:
      'Without it the answer is 402 and says what to pay. Pay, then send the same request with a PaymentProof as JSON',
  },
};

function schemeName(type: string): string {
  return Object.hasOwn(KNOWN_SCHEMES, type) ? type : `plugin_${nameOf(type)}`;
}

function securitySchemes(endpoints: readonly PublicEndpoint[]): Members {
  const types = new Set(endpoints.flatMap(({ auth }) => auth).filter((type) => type !== FREE));
  const unknown = (type: string) => {
    return { type: 'http', scheme: type, description: 'Checked by a plugin of the operator, who says what it wants' };
  };
  return Object.fromEntries([...types].map((type) => [schemeName(type), KNOWN_SCHEMES[type] ?? unknown(type)]));
}

function responsesOf(endpoint: PublicEndpoint): Members {
  return {
    ...successOf(endpoint),
    '400': errorResponse('The request is wrong', requestErrors(endpoint)),
    ...unauthenticated(endpoint),
    '403': refTo('responses', 'Dropped'),
    '404': refTo('responses', 'EndpointNotFound'),
    '413': refTo('responses', 'BodyTooLarge'),
    '415': refTo('responses', 'WrongMediaType'),
    '429': refTo('responses', 'RateLimited'),
    '500': refTo('responses', 'InternalError'),
    ...(endpoint.mode === 'async' ? storeFull : upstreamErrors(endpoint)),
  };
}

function successOf({ mode, encoding }: PublicEndpoint): Members {
  const kind = encoding === undefined ? 'Raw' : 'Encoded';
  const what = encoding === undefined ? 'signed JSON' : `${encodedAs(encoding)}, signed`;
  switch (mode) {
    case 'sync':
      return { '200': jsonResponse(`The answer: ${what}`, { schema: refTo('schemas', `${kind}Answer`) }) };
    case 'async':
      return { '202': { ...accepted, description: `Poll for the answer: ${what}` } };
    case 'stream':
      return { '200': eventResponse(`One server-sent event with the answer: ${what}`, `${kind}Frame`) };
    default:
      return { '2XX': { description: `The answer, ${what}, as a plugin of the operator delivers it` } };
  }
}

function encodedAs({ type }: { readonly type: string }): string {
  return type === '*' ? 'the ABI encoding that the request chooses' : `ABI encoding of (${type})`;
}

const accepted = {
  ...jsonResponse('', { schema: refTo('schemas', 'AsyncSubmission') }, noStore),
  links: { poll: { operationId: 'pollRequest', parameters: { requestId: '$response.body#/requestId' } } },
};

function eventResponse(description: string, frame: string): Members {
  const schema = {
    type: 'string',
    pattern: '^data: \\{.*\\}\\n\\n$',
    contentMediaType: 'text/event-stream',
    contentSchema: refTo('schemas', frame),
  };
  return {
    description,
    headers: { 'X-Request-Id': refTo('headers', 'RequestId'), ...noStore },
    content: { 'text/event-stream': { schema } },
  };
}

function requestErrors({ parameters, reserved }: PublicEndpoint): string[] {
  const required = [...new Set(parameters.filter((parameter) => parameter.required).map(({ name }) => name))];
  const placed = parameters.filter((parameter) => parameter.in !== 'body');
  return [
    'Request body must be valid JSON',
    'Request body must be an object',
    'Request parameters must be an object',
    ...(required.length === 0 ? [] : [`Missing required parameter(s): ${required.join(', ')}`]),
    ...placed.map(({ name }) => `Invalid parameter: ${name}`),
    ...parameters.map(({ name }) => `Invalid parameter: ${name} (send this number as a string)`),
    ...reserved.flatMap((name) => [
      `Endpoint requires \`${name}\` request parameter`,
      `Invalid \`${name}\` request parameter`,
    ]),
  ];
}

const API_KEY_ERRORS = ['Missing X-Api-Key header', 'Invalid API key'];
const PAYMENT_ERRORS = [
  'Invalid payment proof',
  'Payment proof expired',
  'Payment proof valid for too long',
  'Payment proof signature mismatch',
  'Payment already used',
  'Payment not found',
  'Payment does not match',
  'Payment too old',
  'Payment verification unavailable',
  'Too many x402 verification attempts — slow down',
];
const paymentRequired = jsonResponse('Pay first: the body says what', { schema: refTo('schemas', 'PaymentChallenge') });

/** When all methods fail the last one answers; where one is free none fails. */
function unauthenticated({ auth }: PublicEndpoint): Members {
  if (auth.includes(FREE)) return {};
  switch (auth.at(-1)) {
    case 'apiKey':
      return { '401': errorResponse('The key is missing or wrong', API_KEY_ERRORS) };
    case 'x402':
      return { '401': errorResponse('The proof of payment was refused', PAYMENT_ERRORS), '402': paymentRequired };
    default:
      return { '401': errorResponse('A plugin of the operator refused the credentials', ['Unauthorized']) };
  }
}

const storeFull = {
  '503': errorResponse('Too many requests are unfinished or unread', ['Service Unavailable'], noStore),
};

function upstreamErrors({ encoding, encrypted }: PublicEndpoint): Members {
  const path = encoding === undefined || /[*,]/.test(encoding.path) ? '<path>' : encoding.path;
  const unencodable = ['API returned no data to encode', `No value found at path: ${path}`];
  return {
    '502': errorResponse('The upstream gave no answer that can be signed', [
      'API call failed',
      ...(encoding === undefined ? [] : unencodable),
      ...(encrypted ? ['FHE encryption failed'] : []),
    ]),
    '503': errorResponse('Too many upstream calls at once', ['Server busy']),
  };
}

const polling = {
  operationId: 'pollRequest',
  summary: 'The answer of an async endpoint, once it is there',
  description: 'An answer is kept for a minute, a request that is not finished for ten.',
  parameters: [{ name: 'requestId', in: 'path', required: true, schema: refTo('schemas', 'Bytes32') }],
  responses: {
    '200': jsonResponse('How far the request is', { schema: refTo('schemas', 'AsyncRecord') }, noStore),
    '404': errorResponse('No such request, or no longer', ['Request not found'], noStore),
    '429': refTo('responses', 'RateLimited'),
    '500': refTo('responses', 'InternalError'),
  },
};

const health = {
  operationId: 'health',
  summary: 'Whether the service is up, and who signs',
  responses: { '200': jsonResponse('It is up', { schema: refTo('schemas', 'Health') }) },
};
