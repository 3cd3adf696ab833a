import { type OpenApiPart, objectSchema, refTo } from '../../plugins-sdk/openapi.ts';

const schema = (name: string) => refTo('schemas', name);

const Proof = objectSchema(
  'TLS proof by an attestor, where the operator has the upstream proven and the proof succeeded',
  {
    claim: objectSchema('What the attestor vouches for', {
      provider: { const: 'http' },
      parameters: { type: 'string', description: 'JSON text: the request and the patterns that the response matched' },
      context: { type: 'string', description: 'JSON text, such as the values of named groups' },
      owner: schema('Address'),
      timestampS: schema('Timestamp'),
      epoch: { type: 'integer' },
      identifier: { ...schema('Bytes'), description: 'keccak256 of provider, parameters and context' },
    }),
    signatures: objectSchema('Who vouches', { attestorAddress: schema('Address'), claimSignature: schema('Bytes') }),
  },
);

/** Describes the `proof` that a signed answer may have. */
export const openApiPart: OpenApiPart = { schemas: { Proof }, signed: { optional: { proof: schema('Proof') } } };
