import type { DescribedResponse, Named, OpenApiObject, OpenApiPart } from './part.ts';

/** A reference to a component of the document. */
export function refTo(kind: 'schemas' | 'headers' | 'responses', name: string): OpenApiObject {
  return { $ref: `#/components/${kind}/${name}` };
}

/** @param pattern that all of the text matches. */
export function textSchema(pattern: string, description: string): OpenApiObject {
  return { type: 'string', pattern, description };
}

/** All members are required but those named. */
export function objectSchema(description: string, properties: Named, optional: readonly string[] = []): OpenApiObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', description, required, properties };
}

/** The schema of an object with other members in front, all of them required. */
export function withMembers({ required, properties, ...rest }: OpenApiObject, members: Named): OpenApiObject {
  const others: readonly unknown[] = Array.isArray(required) ? required : [];
  return {
    ...rest,
    required: [...Object.keys(members), ...others],
    properties: { ...members, ...Object(properties) },
  };
}

/** Letters and digits of a text, joined with underscores: what the document can name a thing. */
export function nameOf(label: string): string {
  return label.replace(/[^A-Za-z0-9]+/g, '_').replace(/^_|_$/g, '');
}

/** Headers of a response that nobody may keep. */
export const noStore: Named = { 'Cache-Control': refTo('headers', 'NoStore') };

/** What becomes of every request in which something goes wrong that is nobody else's fault. */
export const internalError: DescribedResponse = {
  name: 'InternalError',
  description: 'Nothing was signed; the log of the service says why',
  errors: ['Internal server error'],
};

/** What is the same whatever plugins there are. */
export const ground: OpenApiPart = {
  schemas: {
    Address: textSchema('^0x[0-9a-fA-F]{40}$', 'An address; those of this service carry the EIP-55 checksum'),
    Bytes32: textSchema('^0x[0-9a-f]{64}$', '32 bytes of hex'),
    Bytes: textSchema('^0x([0-9a-fA-F]{2})*$', 'Any number of bytes of hex'),
    Timestamp: { type: 'integer', minimum: 0, description: 'Unix time in seconds' },
    Error: objectSchema('What went wrong', { error: { type: 'string' } }),
  },
  headers: {
    RequestId: {
      description: 'Names the request in the log of the service',
      required: true,
      schema: refTo('schemas', 'Bytes32'),
    },
    RetryAfter: { description: 'Seconds to wait', required: true, schema: { type: 'integer', minimum: 0 } },
    NoStore: {
      description: 'Nobody on the way may keep the response',
      required: true,
      schema: { const: 'no-store' },
    },
  },
  operation: () => ({
    responses: {
      403: {
        name: 'Dropped',
        description: 'A plugin of the operator refused; it may choose another status and text',
        errors: ['Request dropped by plugin "<name>"', 'Plugin "<name>" budget exhausted'],
      },
      404: {
        name: 'EndpointNotFound',
        description: 'The operator has changed or removed the endpoint',
        errors: ['Endpoint not found'],
      },
      500: internalError,
    },
  }),
};

/** Of a key that is public; its signatures are real. */
const exampleNames = {
  node: '0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A',
  endpointId: `0x${'a1'.repeat(32)}`,
  timestamp: 1767225600,
};
const examples = {
  Encoded: {
    ...exampleNames,
    data: `0x${'14d1120d7b160000'.padStart(64, '0')}`,
    signature:
      '0xd828f8382f23a6aab38665aeb100f44966c27745c061911e733edb4d93f5d53b41157269dcf04fa38dc351b6a2e3d2673943e149c7c4866bd99966361ecdaa031b',
  },
  Raw: {
    ...exampleNames,
    rawData: { asset: 'ETH', price: 3000.5 },
    signature:
      '0xc6b041ee2229b008da9a75f5c1984a5a50eaa1b7babf9a8ad2a545431a2e97c503c76cee0515b186db5201bc10ac926f98d78b0e5b383fc1268e8e98583eccf61c',
  },
};

/** What a plugin says of its answers whose `sign` makes the EIP-191 signature of {@link dataDigest}. */
export const eip191Part: OpenApiPart = {
  examples,
  schemas: { Signature: textSchema('^0x[0-9a-f]{130}$', '65 bytes of hex: r, s and v, which is 27 or 28') },
  signed: {
    description:
      '`signature` is the EIP-191 personal signature, by `node`, of the 32-byte digest ' +
      '`keccak256(abi.encodePacked(bytes32 endpointId, uint256 timestamp, bytes data))`. ' +
      'Compare `node` and `endpointId` with those that you expect: an answer proves nothing about its own names.',
    required: { signature: refTo('schemas', 'Signature') },
  },
};
