import type { DescribedRoute, DescribedService, OpenApiPart } from '../../plugins-sdk/openapi.ts';
import { refusals } from './refusals.ts';
import { type McpSettings, settingsIn } from './settings.ts';

const message = { type: 'object', description: 'A message of JSON-RPC 2.0' };

const route = ({ path }: McpSettings): DescribedRoute => ({
  method: 'POST',
  path,
  admit: true,
  operation: {
    operationId: 'mcp',
    summary: 'The endpoints as tools of agents (Model Context Protocol)',
    description:
      'Streamable HTTP without sessions. A tool is asked as its endpoint is: the same limits, keys and payments.',
    requestBody: { required: true, content: { 'application/json': { schema: message } } },
  },
  responses: {
    200: { description: 'What the protocol answers; some clients get it as an event', schema: message },
    202: { description: 'A notification was taken' },
    400: { description: 'The message is wrong', errors: [refusals.batch().message] },
    403: { description: 'The request came to, or from, a host that is not known', errors: [refusals.host().message] },
    413: { errors: ['Request body too large'] },
  },
});

/** Describes the route for messages in the OpenAPI document. */
export function openApiPart({ config }: DescribedService): OpenApiPart {
  const settings = settingsIn(config);
  return settings === undefined ? {} : { routes: [route(settings)] };
}
