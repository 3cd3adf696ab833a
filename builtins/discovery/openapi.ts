import { type DescribedResponse, type DescribedRoute, objectSchema } from '../../plugins-sdk/openapi.ts';

function described(
  path: string,
  operation: { summary: string; [name: string]: unknown },
  content: DescribedResponse,
): DescribedRoute {
  const responses = { 200: { description: operation.summary, ...content } };
  return { method: 'GET', path, admit: true, operation, responses };
}

const resources = { type: 'array', items: { type: 'string' }, description: 'URLs that are asked by POST' };
export const soldRoute = described(
  '/.well-known/x402',
  {
    operationId: 'wellKnownX402',
    summary: 'What is sold, for catalogues of x402',
    description: 'URLs of the endpoints that are paid for by x402.',
  },
  { schema: objectSchema('What is sold', { version: { const: 1 }, resources }) },
);

export const guideRoute = described(
  '/llms.txt',
  {
    operationId: 'llmsTxt',
    summary: 'What agents should know of the service',
    description: 'Each endpoint with its parameters and price, as text.',
  },
  { schema: { type: 'string' }, mediaType: 'text/plain' },
);
