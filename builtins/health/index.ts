import { definePlugin } from '../../plugins-sdk/index.ts';
import { probes } from '../shared/probes.ts';
import { openApiPart } from './openapi.ts';

/**
 * `GET /health` says that the service is up, and who signs. `GET /ready` tells load balancers whether it takes requests, with 503
 * when it does not.
 */
export const health = definePlugin({
  name: 'health',
  openapi: () => openApiPart,
  setup: (services) => ({
    routes: Object.entries(probes(services)).map(([path, handle]) => ({
      method: 'GET',
      path,
      admit: false,
      handle,
    })),
  }),
});
