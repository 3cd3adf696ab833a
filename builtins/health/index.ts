import { definePlugin } from '../../plugins-sdk/index.ts';
import { probes } from '../shared/probes.ts';
import { openApiPart } from './openapi.ts';

/**
 * Serves `GET /health`, which says that the service is up and who signs, and `GET /ready`, which load balancers ask whether the
 * service takes requests: 503 if not.
 */
export const health = definePlugin({
  name: 'health',
  openapi: () => openApiPart,
  setup: (services) => ({
    routes: Object.entries(probes(services)).map(([path, handle]) => ({ method: 'GET', path, admit: false, handle })),
  }),
});
