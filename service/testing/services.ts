import { resolve } from 'node:path';
import type { Definition } from '../../plugins-sdk/define.ts';
import { silentLog } from '../../plugins-sdk/log.ts';
import type { Services } from '../../plugins-sdk/services.ts';
import { Debts } from '../../plugins-sdk/state/debts.ts';
import { StateStore } from '../../plugins-sdk/state/store.ts';
import { testEndpoint } from '../../plugins-sdk/testing/values.ts';
import { describeService } from '../description.ts';
import { StatusParts } from '../status.ts';

/** The services that the harness makes itself. */
type OfHarness = Pick<Services, 'background' | 'meters' | 'now'>;

/** Returns the services for a definition's `setup`, some replaced by the test. @param config the definition's own config. */
export function servicesOf(definition: Definition, config: unknown, services: Partial<Services> & OfHarness): Services {
  const given: Services = {
    config: {},
    answerConfig: services.config ?? {},
    endpoints: [testEndpoint()],
    version: '0.0.0',
    node: '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf',
    credentials: [],
    exposed: [],
    log: silentLog,
    path: (relative) => resolve(relative),
    hide: (text) => text,
    states: new StateStore(),
    debts: new Debts(),
    dependencies: () => [],
    status: new StatusParts(),
    budget: 'none',
    ask: () => Promise.reject(new Error('a test of one plugin has no endpoints to ask')),
    admit: async () => undefined,
    prices: { providers: () => new Map(), priceOf: () => undefined },
    phase: () => 'serving',
    describe: () =>
      describeService({
        config: given.config,
        endpoints: given.endpoints,
        plugins: [{ definition, config }],
        version: given.version,
      }),
    ...services,
  };
  return given;
}
