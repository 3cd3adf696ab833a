import { keys, reservedParameters } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import { type DescribedOperation, type OpenApiPart, refTo } from '../../plugins-sdk/openapi.ts';
import { MAX_REQUESTER_TEXT, REQUESTER_TYPES } from './lists.ts';

const TYPES = [...REQUESTER_TYPES];

const choices = {
  _type: {
    description: 'ABI type of the answer, or a comma-separated list of them',
    type: 'string',
    maxLength: MAX_REQUESTER_TEXT,
    anyOf: [{ enum: TYPES }, { pattern: `^(${TYPES.join('|')})( *, *(${TYPES.join('|')}))+$` }],
  },
  _path: {
    description: 'JSONPath of the value in the upstream answer, or a comma-separated list of them',
    type: 'string',
    minLength: 1,
    maxLength: MAX_REQUESTER_TEXT,
  },
  _times: {
    description: 'Multiplier of an integer, such as 1e18, or a comma-separated list of them; 1 changes nothing',
    type: ['string', 'number'],
    maxLength: MAX_REQUESTER_TEXT,
  },
};

function describeEndpoint(endpoint: Endpoint): DescribedOperation | undefined {
  const encoding = keys.encoding.of(endpoint);
  if (encoding === undefined) return undefined;
  const { type, path, combine } = encoding;
  const names = reservedParameters(endpoint);
  const what =
    type === '*'
      ? 'the ABI encoding that the request chooses'
      : `ABI encoding of ${combine === undefined ? '' : `the ${combine} as `}(${type})`;
  const errors = names.flatMap((name) => [
    `Endpoint requires \`${name}\` request parameter`,
    `Invalid \`${name}\` request parameter`,
  ]);
  const missing = `No value found at path: ${/[*,]/.test(path) ? '<path>' : path}`;
  return {
    answer: { kind: 'Encoded', text: `${what}, signed` },
    parameters: Object.fromEntries(names.map((name) => [name, choices[name]])),
    required: names,
    ...(errors.length === 0 ? {} : { responses: { 400: { errors } } }),
    failures: { 502: { errors: ['API returned no data to encode', missing] } },
  };
}

export const abiPart: OpenApiPart = {
  answers: { Encoded: { data: { ...refTo('schemas', 'Bytes'), description: 'ABI-encoded values' } } },
  operation: describeEndpoint,
};
