/**
 * A test harness for plugins: it puts one plugin into a real registry, behind the guard that it has in the service, and
 * runs it through one stage at a time. Budget, frozen context, checked results and the texts of refusals are therefore
 * those of production, and the plugin's observers are told of what is run. Import it from `signed-data-proxy/plugins-sdk/testing`.
 *
 * @example
 * ```ts
 * const harness = await testPlugin(allowList({ allow: ['10.0.0.0/8'] }), { budget: 50 });
 * const outcome = await harness.onHttpRequest({ ip: '192.0.2.1' });
 * assert.deepEqual(outcome, { refused: { status: 403, message: 'Address not allowed' } });
 * ```
 *
 * @example Hooks that share one request, and with it one budget and one `requestId`:
 * ```ts
 * const request = harness.request({ headers: { 'x-tenant': 'a' }, parameters: { symbol: 'ETH' } });
 * assert.deepEqual(await request.onHttpRequest(), { passed: true });
 * assert.deepEqual(await request.onBeforeSign({ data: '0x01' }), { value: '0x02' });
 * ```
 */
import type { Plugin } from '../kernel/registry.ts';
import { Background } from './background.ts';
import type { Definition, EndpointKeys, Services, SimplePlugin } from './define.ts';
import type { Hex } from './hex.ts';
import type { Endpoint, HttpResponse, Json, Parameters } from './kernel.ts';
import { createPluginSet } from './plugin-set.ts';
import { checkBehaviour } from './shape.ts';
import type {
  AfterApiCallInput,
  BeforeApiCallInput,
  BeforeSignInput,
  Complaint,
  ErrorInput,
  Outcome,
  RequestInput,
  ResponseSentInput,
  RouteInput,
} from './testing/inputs.ts';
import { configOf, definitionOf } from './testing/prepared.ts';
import { complaint, type Subject, TestRequest, textOf } from './testing/request.ts';
import { servicesOf, testEndpoint } from './testing/services.ts';

export type * from './testing/inputs.ts';
export { TestRequest, testEndpoint };

const DEFAULT_BUDGET = 1000;

export interface HarnessOptions {
  /** Milliseconds per request for all hooks together, as `timeout` sets them in the config; default the plugin's, else 1000. */
  readonly budget?: number | 'none' | undefined;
  /** What a simple plugin's file exports as `keys`; the values are those of the endpoint that a request goes to. */
  readonly keys?: EndpointKeys | undefined;
  /** The second argument of a definition's `setup`, once its `configSchema` has checked it; a factory gets its config when it is called. */
  readonly config?: unknown;
  /** The context of the test, as node:test hands it to one: the plugin is stopped when the test ends, also when it fails. */
  readonly t?: { after(end: () => Promise<void>): void } | undefined;
  /** Replaces parts of what a definition's `setup` gets. Requests go to the first of `endpoints` unless they name one. */
  readonly services?: Partial<Services> | undefined;
}

/**
 * Registers a plugin as the service would, and starts it.
 * @param plugin `{name, hooks}`, what a factory returned, or a definition with `setup`.
 * @throws what the service would not start with: an unknown hook or member, a bad config, what `setup` or `start` throws.
 */
export async function testPlugin(
  plugin: SimplePlugin | Definition,
  options: HarnessOptions = {},
): Promise<PluginHarness> {
  if (typeof plugin !== 'object' || plugin === null)
    throw new TypeError('testPlugin takes a plugin: call its factory first');
  const requested = new Map<unknown, Endpoint>();
  const definition = definitionOf(plugin, options.keys, (requestId) => requested.get(requestId));
  const config = await configOf(definition, options.config);
  const complaints: Complaint[] = [];
  const background = new Background((_, error) => complaints.push(complaint('background', '', textOf(error))));
  const services = servicesOf(definition, config, {
    background: (work) => background.add(definition.name, work),
    ...options.services,
  });
  const behaviour = checkBehaviour(definition.setup(services, config));
  const { name, budget = DEFAULT_BUDGET, credentials } = definition;
  const others = { name: `${name} (harness)`, budget, credentials: services.credentials, plugin: {} };
  const { hooks, observer, taps } = createPluginSet(
    [others, { name, budget: options.budget ?? budget, credentials, plugin: behaviour }],
    ({ stage, requestId, error }) => complaints.push(complaint(stage, requestId, textOf(error))),
  );
  const subject = { hooks, observer, taps, requested, complaints, background };
  const harness = new PluginHarness(subject, behaviour, services.endpoints[0] ?? testEndpoint());
  options.t?.after(() => harness.stop());
  await behaviour.start?.();
  return harness;
}

/** One plugin, ready to be run. Each call of a hook here is a request of its own, with a budget of its own. */
export class PluginHarness {
  /**
   * What went wrong in the plugin so far: failures of observation hooks and of other stages that go on without it, and
   * the reason behind each drop, spent budget and 500. A deliberate rejection is no complaint.
   */
  readonly complaints: readonly Complaint[];
  readonly #subject: Subject;
  readonly #plugin: Plugin;
  readonly #endpoint: Endpoint;

  constructor(subject: Subject, plugin: Plugin, endpoint: Endpoint) {
    this.#subject = subject;
    this.#plugin = plugin;
    this.#endpoint = endpoint;
    this.complaints = subject.complaints;
  }

  /** A request for several hooks, which share its budget. */
  request(input: RequestInput = {}): TestRequest {
    return new TestRequest(this.#subject, { endpoint: this.#endpoint, ...input });
  }

  onHttpRequest(input: RequestInput = {}): Promise<Outcome<never>> {
    return this.request(input).onHttpRequest();
  }

  onBeforeApiCall(input: RequestInput & BeforeApiCallInput = {}): Promise<Outcome<Parameters>> {
    return this.request(input).onBeforeApiCall();
  }

  onAfterApiCall(input: RequestInput & AfterApiCallInput = {}): Promise<Outcome<{ data: Json; status: number }>> {
    return this.request(input).onAfterApiCall(input);
  }

  onBeforeSign(input: RequestInput & BeforeSignInput = {}): Promise<Outcome<Hex>> {
    return this.request(input).onBeforeSign(input);
  }

  /** Resolves when the hook is done; the service does not wait for it. */
  onResponseSent(input: RequestInput & ResponseSentInput = {}): Promise<void> {
    return this.request(input).onResponseSent(input);
  }

  /** Resolves when the hook is done; the service does not wait for it. */
  onError(input: RequestInput & ErrorInput = {}): Promise<void> {
    return this.request(input).onError(input);
  }

  /**
   * A request to a route of the plugin, past the `admit` stage.
   * @param path as the plugin registered it: `/tenants/:name`.
   * @returns what goes back over HTTP, checked; status 413 for a body over the route's `maxBody`.
   * @throws TypeError when the plugin has no such route.
   */
  async route(method: string, path: string, input: RouteInput = {}): Promise<Outcome<HttpResponse>> {
    const route = this.#plugin.routes?.find((known) => known.method === method && known.path === path);
    if (route === undefined) throw new TypeError(`the plugin serves no ${method} ${path}`);
    const { headers, ip } = input;
    return new TestRequest(this.#subject, { headers, ip }, route).route(route, input);
  }

  /** Resolves when what the plugin has left to `services.background` has ended; failures are {@link complaints}. */
  background(): Promise<void> {
    return this.#subject.background.ended();
  }

  /** Stops the plugin, for one that has `stop`. */
  async stop(deadline = 1000): Promise<void> {
    await this.#plugin.stop?.(deadline);
  }
}
