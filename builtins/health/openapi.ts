import { type OpenApiPart, objectSchema, refTo } from '../../plugins-sdk/openapi.ts';

/** Describes the two probes. */
export const openApiPart: OpenApiPart = {
  schemas: {
    Health: objectSchema('The service is up', { status: { const: 'ok' }, node: refTo('schemas', 'Address') }),
    Readiness: objectSchema(
      'Whether the service takes requests',
      {
        status: { enum: ['ready', 'away', 'starting', 'stopping'] },
        away: { type: 'array', items: { type: 'string' }, description: 'What it needs and cannot reach' },
      },
      ['away'],
    ),
  },
  routes: [
    {
      method: 'GET',
      path: '/health',
      admit: false,
      operation: {
        operationId: 'health',
        summary: 'Whether the service is up, and who signs',
        description:
          'While a process serves, it says that it is up; whether it takes requests is said by `GET /ready`.',
      },
      responses: { 200: { description: 'It is up', schema: refTo('schemas', 'Health') } },
    },
    {
      method: 'GET',
      path: '/ready',
      admit: false,
      operation: {
        operationId: 'ready',
        summary: 'Whether the service takes requests',
        description: 'While something is away, it says what.',
      },
      responses: {
        200: { description: 'It takes requests', schema: refTo('schemas', 'Readiness') },
        503: { description: 'It takes none now', schema: refTo('schemas', 'Readiness') },
      },
    },
  ],
};
