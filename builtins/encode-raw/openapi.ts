import { keys } from '../../plugins-sdk/config.ts';
import type { OpenApiPart } from '../../plugins-sdk/openapi.ts';

const rawData = {
  description:
    'What the upstream says: any JSON value. What is signed in place of `data` is the keccak256 of its canonical JSON text (RFC 8785)',
};

/** What the document says of endpoints without an encoding. */
export const openApiPart: OpenApiPart = {
  answers: { Raw: { rawData } },
  operation: (endpoint) =>
    keys.encoding.of(endpoint) === undefined ? { answer: { kind: 'Raw', text: 'signed JSON' } } : undefined,
};
