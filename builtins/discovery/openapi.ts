import { type DescribedRoute, objectSchema } from '../../plugins-sdk/openapi.ts';

const resources = { type: 'array', items: { type: 'string' }, description: 'URLs that are asked by POST' };

export const soldRoute: DescribedRoute = {
  method: 'GET',
  path: '/.well-known/x402',
  admit: true,
  operation: {
    operationId: 'wellKnownX402',
    summary: 'What is sold, for catalogues of x402',
    description: 'URLs of the endpoints that are paid for by x402.',
  },
  responses: {
    200: {
      description: 'What is sold, for catalogues of x402',
      schema: objectSchema('What is sold', { version: { const: 1 }, resources }),
    },
  },
};

export const guideRoute: DescribedRoute = {
  method: 'GET',
  path: '/llms.txt',
  admit: true,
  operation: {
    operationId: 'llmsTxt',
    summary: 'What agents should know of the service',
    description: 'Each endpoint with its parameters and price, as text.',
  },
  responses: {
    200: {
      description: 'What agents should know of the service',
      schema: { type: 'string' },
      mediaType: 'text/plain',
    },
  },
};
