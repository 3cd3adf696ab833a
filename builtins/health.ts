import { definePlugin, objectSchema, refTo } from '../plugins-sdk/index.ts';
import { probes } from './shared/probes.ts';

/**
 * `GET /health` says that the service is up, and who signs. `GET /ready` tells load balancers whether it takes requests, with 503
 * when it does not.
 */
export const health = definePlugin({
  name: 'health',
  budget: 'none',
  openapi: () => ({
    schemas: {
      Health: objectSchema('The service is up', { status: { const: 'ok' }, node: refTo('schemas', 'Address') }),
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
    ],
  }),
  setup: (services) => ({
    routes: Object.entries(probes(services)).map(([path, handle]) => ({
      method: 'GET',
      path,
      admit: false,
      handle,
    })),
  }),
});
