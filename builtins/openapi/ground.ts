import { internalError, type OpenApiPart, objectSchema, refTo, textSchema } from '../../plugins-sdk/openapi.ts';

/** The part of the document that does not depend on plugins. */
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
    NoStore: { description: 'Nobody on the way may keep the response', required: true, schema: { const: 'no-store' } },
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
