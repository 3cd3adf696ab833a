import { resolve } from 'node:path';
import type { Definition } from '../define.ts';
import { endpointNames, serviceNames } from '../former-names.ts';
import { MeterRegistry } from '../host/meter-registry.ts';
import { describeService } from '../host/openapi/document.ts';
import { StatusParts } from '../host/status-parts.ts';
import type { Endpoint } from '../kernel.ts';
import { silentLog } from '../log.ts';
import type { Services } from '../services.ts';
import { Debts } from '../state/debts.ts';
import { StateStore } from '../state/state.ts';

/** An endpoint to address requests to; pass what matters to the test. */
export function testEndpoint(members: Partial<Endpoint> = {}): Endpoint {
  const endpoint: Endpoint = {
    id: `0x${'11'.repeat(32)}` as const,
    api: 'test-api',
    name: 'test-endpoint',
    mode: 'sync',
    auth: [{ type: 'free' }],
    block: {},
    apiBlock: {},
    ...endpointNames.present(members),
  };
  return Object.freeze(endpointNames.addTo(endpoint));
}

/** What a definition's `setup` gets, parts of it replaced. @param config of the definition. */
export function servicesOf(definition: Definition, config: unknown, services: Partial<Services>): Services {
  const given: Services = {
    config: {},
    endpoints: [testEndpoint()],
    version: '0.0.0',
    node: '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf',
    credentials: [],
    exposed: [],
    log: silentLog,
    path: (relative) => resolve(relative),
    hide: (text) => text,
    now: Date.now,
    states: new StateStore(),
    debts: new Debts(),
    dependencies: () => [],
    meters: new MeterRegistry().draft().of(definition.name),
    status: new StatusParts(),
    budget: 'none',
    ask: () => Promise.reject(new Error('a test of one plugin has no endpoints to ask')),
    admit: async () => undefined,
    prices: { providers: () => new Map(), priceOf: () => undefined },
    tryEndpoint: () => Promise.reject(new Error('a test of one plugin has no upstream to ask')),
    background: () => undefined,
    phase: () => 'serving',
    describe: () =>
      describeService({
        config: given.config,
        endpoints: given.endpoints,
        plugins: [{ definition, config }],
        version: given.version,
      }),
    ...serviceNames.present(services),
  };
  return serviceNames.addTo(given);
}
