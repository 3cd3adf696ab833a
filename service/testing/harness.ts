import { budgetIn, checkBehaviour, checkMember } from '../../config/plugins/check-definition.ts';
import { errorForLog } from '../../kernel/refusal.ts';
import type { Definition, SimplePlugin } from '../../plugins-sdk/define.ts';
import type { Services } from '../../plugins-sdk/services.ts';
import { Debts } from '../../plugins-sdk/state/debts.ts';
import type { Complaint } from '../../plugins-sdk/testing/inputs.ts';
import { TestMetrics } from '../../plugins-sdk/testing/metrics.ts';
import { type HarnessOptions, PluginHarness, type Serve } from '../../plugins-sdk/testing/plugin-harness.ts';
import { complaint } from '../../plugins-sdk/testing/request.ts';
import { testEndpoint } from '../../plugins-sdk/testing/values.ts';
import { inBackground } from '../background.ts';
import { MeterRegistry } from '../meter-registry.ts';
import { createPluginSet } from '../plugin-set.ts';
import { configOf, definitionOf, startFaults } from './prepared.ts';
import { servicesOf } from './services.ts';

const DEFAULT_BUDGET_MS = 1000;

/** Sets up and starts a plugin in a harness. @param serve makes a service with the plugin in it. */
export async function createHarness(
  plugin: SimplePlugin | Definition,
  options: HarnessOptions,
  serve: Serve,
): Promise<PluginHarness> {
  if (typeof plugin !== 'object' || plugin === null)
    throw new TypeError('testPlugin takes a plugin: call its factory first');
  const definition = definitionOf(plugin, options.keys);
  const config = await configOf(definition, options.config);
  const instruments = instrumentsOf(definition, config, options.services);
  const { services, complain } = instruments;
  const behaviour = checkBehaviour(definition.setup(services, config));
  const { name, credentials } = definition;
  const own = definition.budget ?? DEFAULT_BUDGET_MS;
  const budget = options.budget ?? budgetIn(services.config, services.endpoints, own);
  checkMember('budget', budget);
  const others = { name: `${name} (harness)`, budget, credentials: services.credentials, plugin: {} };
  const { hooks, observer, taps } = createPluginSet(
    [others, { name, budget, credentials, plugin: behaviour }],
    ({ stage, requestId, error }) => complain(stage, errorForLog(error), requestId),
    { signers: [services.node], now: () => services.now(), endpoints: new Set(services.endpoints) },
  );
  for (const message of startFaults(definition, taps, services, options)) complain('start', message);
  const harness = new PluginHarness({
    ...{ hooks, observer, taps, plugin: behaviour, ...instruments },
    endpoint: services.endpoints[0] ?? testEndpoint(),
    serve: (given, more) => serve({ ...options, plugin, now: services.now }, given, more),
  });
  options.t?.after(() => harness.stop());
  await behaviour.start?.();
  return harness;
}

/** Makes the services for the plugin, and the clock, metrics and complaints that a test reads or changes. */
function instrumentsOf(definition: Definition, config: unknown, replaced?: Partial<Services>) {
  const complaints: Complaint[] = [];
  const complain = (hook: string, detail: string, requestId = '') =>
    void complaints.push(complaint(hook, requestId, detail));
  const background = new Debts();
  const leave = inBackground(background, (_, error) => complain('background', errorForLog(error)));
  const metrics = new TestMetrics();
  const registry = new MeterRegistry(({ name: instrument }, error) =>
    complain('metrics', `the instrument "${instrument}" cannot be measured: ${errorForLog(error)}`),
  );
  registry.connect(metrics);
  const meters = registry.draft();
  meters.commit();
  let ahead = 0;
  const now = () => (replaced?.now ?? Date.now)() + ahead;
  const advance = (milliseconds: number) => {
    ahead += milliseconds;
  };
  const services = servicesOf(definition, config, {
    background: (work) => leave(definition.name, work),
    meters: meters.of(definition.name),
    ...replaced,
    now,
  });
  return { complaints, complain, background, metrics, advance, services };
}
