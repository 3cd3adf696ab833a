/**
 * Counts by endpoint how requests ended. With `settings.metrics` the counts are the metric `signed_data_proxy_settlements_total`.
 * `GET /counts` shows them since the start of the service.
 *
 * ```yaml
 * settings:
 *   metrics: {}
 *   plugins:
 *     - source: ./counter.ts
 * ```
 */
import { definePlugin } from 'signed-data-proxy/plugins-sdk';
import { StateKey } from 'signed-data-proxy/plugins-sdk/state';

type Counts = Record<string, Record<string, number>>;

/** The counts, which outlive a reload of the config. */
const kept = new StateKey<Counts>('counts');

export default definePlugin({
  name: 'counter',
  openapi: () => ({
    routes: [
      {
        method: 'GET',
        path: '/counts',
        admit: true,
        operation: { operationId: 'getCounts', summary: 'How requests ended, by endpoint' },
        responses: { 200: { description: 'Numbers by outcome', schema: { type: 'object' } } },
      },
    ],
  }),
  setup({ meters, states }) {
    const counts = states.keep(kept, '', (): Counts => ({}));
    const help = 'Requests by endpoint: signed, refused or abandoned by the client';
    const settlements = meters.counter({ name: 'settlements_total', help, labels: ['endpoint', 'outcome'] });
    return {
      hooks: {
        concluded: ({ kind: outcome }, { resolved }) => {
          if (resolved === undefined) return;
          const endpoint = `${resolved.api}/${resolved.name}`;
          settlements({ endpoint, outcome }, 1);
          counts[endpoint] ??= {};
          counts[endpoint][outcome] = (counts[endpoint][outcome] ?? 0) + 1;
        },
      },
      routes: [
        { method: 'GET', path: '/counts', admit: true, handle: () => ({ status: 200, body: JSON.stringify(counts) }) },
      ],
    };
  },
});
