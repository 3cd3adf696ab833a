/**
 * A test harness for plugins: it puts one plugin into a real registry, behind the guard that it has in the service, and
 * runs it through one stage at a time. Budget, frozen context, checked results and the texts of refusals are therefore
 * those of production. Import it from `signed-data-proxy/plugins-sdk/testing`.
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
import { inspect, types } from 'node:util';
import { control, Exchange } from '../kernel/exchange.ts';
import type { Hooks } from '../kernel/hooks.ts';
import { asRefusal, describe, isRefusal, Refusal } from '../kernel/refusal.ts';
import { type Plugin, Registry } from '../kernel/registry.ts';
import {
  type ArgsOf,
  type InnerStage,
  type ResultOf,
  type StageName,
  stageOf,
  type VariantStage,
} from '../kernel/stages.ts';
import { contracts } from './contracts.ts';
import type { Definition, Log, Services, SimplePlugin } from './define.ts';
import type { Hex } from './hex.ts';
import type { Endpoint, Json, Parameters } from './kernel.ts';
import { MeterRegistry } from './meters.ts';
import { describeService } from './openapi.ts';
import { deepFreeze } from './public-hooks.ts';
import { randomId } from './random-id.ts';
import { StateStore } from './state.ts';

/** What becomes of a request at one stage. */
export type Outcome<Value> =
  /** It goes on as it was: the plugin has no such hook, returned nothing, or what was there before. */
  | { readonly passed: true }
  /** It goes on with what the plugin returned, as the next stage gets it. */
  | { readonly value: Value }
  /** It ends here: what the client gets. */
  | { readonly refused: { readonly status: number; readonly message: string } };

/** What the log of the service would say against the plugin. */
export interface Complaint {
  readonly hook: string;
  readonly requestId: string;
  /** One line: what was thrown (`Error: no route`), what was wrong with the result, or how the budget was spent. */
  readonly message: string;
  /** The same with the stack, where there is one. */
  readonly detail: string;
}

export interface HarnessOptions {
  /** Milliseconds per request for all hooks together, as `timeout` sets them in the config; default the plugin's, else 1000. */
  readonly budget?: number | 'none' | undefined;
  /** The second argument of a definition's `setup`, as if validated; a factory gets its config when it is called. */
  readonly config?: unknown;
  /** Replaces parts of what a definition's `setup` gets. Requests go to the first of `endpoints` unless they name one. */
  readonly services?: Partial<Services> | undefined;
}

/** One request; everything has a default. */
export interface RequestInput {
  /** As the client sent them; default none. */
  readonly parameters?: Parameters | undefined;
  /** Names in any case; hooks see them in lower case, without those that carry credentials. Default none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default `127.0.0.1`. */
  readonly ip?: string | undefined;
  /** See {@link testEndpoint}. */
  readonly endpoint?: Endpoint | undefined;
  /** The id as sent of a request that matches no endpoint; `onError` is the only hook that ever sees such a request. */
  readonly unknownEndpoint?: string | undefined;
}

export interface BeforeApiCallInput {
  /** Values of declared parameters; default those of the request. */
  readonly parameters?: Parameters | undefined;
}

export interface AfterApiCallInput extends BeforeApiCallInput {
  /** The upstream's answer; default `null`. */
  readonly data?: Json | undefined;
  /** Default 200. */
  readonly status?: number | undefined;
}

export interface BeforeSignInput {
  /** The encoded bytes as `0x` hex; default a zero word of 32 bytes. */
  readonly data?: Hex | undefined;
}

export interface ResponseSentInput {
  /** Default 200. */
  readonly status?: number | undefined;
  /** Milliseconds; default the time since the request was made. */
  readonly duration?: number | undefined;
}

export interface ErrorInput {
  /** What the client got; default 502. */
  readonly status?: number | undefined;
  /** What the client got; default `API call failed`. */
  readonly message?: string | undefined;
  /** The stage that failed; default `callApi`. */
  readonly stage?: StageName | undefined;
}

/** What {@link TestRequest.stage} takes for a stage: the variant, where the stage has variants, then its arguments. */
export type StageInput<N extends StageName> = N extends VariantStage
  ? [variant: string, ...given: WithoutExchange<ArgsOf<N>>]
  : WithoutExchange<ArgsOf<N>>;
type WithoutExchange<A> = A extends [...infer Given, Exchange] ? Given : never;

const DEFAULT_BUDGET = 1000;

/** An endpoint to address requests to; pass what matters to the test. */
export function testEndpoint(members: Partial<Endpoint> = {}): Endpoint {
  return Object.freeze({
    id: `0x${'11'.repeat(32)}` as const,
    api: 'test-api',
    name: 'test-endpoint',
    mode: 'sync',
    auth: [{ type: 'free' }],
    own: {},
    shared: {},
    ...members,
  });
}

/**
 * Registers a plugin as the service would, and starts it.
 * @param plugin `{name, hooks}`, what a factory returned, or a definition with `setup`.
 * @throws what the service would not start with: an unknown hook, a hook that is no function, what `setup` or `start` throws.
 */
export async function testPlugin(
  plugin: SimplePlugin | Definition,
  options: HarnessOptions = {},
): Promise<PluginHarness> {
  if (typeof plugin !== 'object' || plugin === null)
    throw new TypeError('testPlugin takes a plugin: call its factory first');
  const definition: Definition =
    'setup' in plugin ? plugin : { name: plugin.name, setup: () => ({ hooks: plugin.hooks }) };
  const services = servicesOf(definition, options);
  const behaviour = definition.setup(services, options.config);
  const complaints: Complaint[] = [];
  const registry = new Registry({
    contracts,
    complain: ({ stage, requestId, error }) => complaints.push(complaint(stage, requestId, textOf(error))),
  });
  registry.register({
    name: `${definition.name} (harness)`,
    budget: 'none',
    credentials: services.credentials,
    plugin: {},
  });
  const { name, budget = DEFAULT_BUDGET, credentials } = definition;
  registry.register({ name, budget: options.budget ?? budget, credentials, plugin: behaviour });
  const { hooks } = registry.seal();
  await behaviour.start?.();
  return new PluginHarness(hooks, behaviour, services.endpoints[0] ?? testEndpoint(), complaints);
}

/** One plugin, ready to be run. Each call of a hook here is a request of its own, with a budget of its own. */
export class PluginHarness {
  /**
   * What went wrong in the plugin so far: failures of observation hooks and of other stages that go on without it, and
   * the reason behind each drop, spent budget and 500. A deliberate rejection is no complaint.
   */
  readonly complaints: readonly Complaint[];
  readonly #hooks: Hooks;
  readonly #plugin: Plugin;
  readonly #endpoint: Endpoint;
  readonly #complaints: Complaint[];

  constructor(hooks: Hooks, plugin: Plugin, endpoint: Endpoint, complaints: Complaint[]) {
    this.#hooks = hooks;
    this.#plugin = plugin;
    this.#endpoint = endpoint;
    this.#complaints = complaints;
    this.complaints = complaints;
  }

  /** A request for several hooks, which share its budget. */
  request(input: RequestInput = {}): TestRequest {
    return new TestRequest(this.#hooks, { endpoint: this.#endpoint, ...input }, this.#complaints);
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

  /** Stops the plugin, for one that has `stop`. */
  async stop(deadline = 1000): Promise<void> {
    await this.#plugin.stop?.(deadline);
  }
}

/** One request on its way through the hooks, in whatever order the test calls them. */
export class TestRequest {
  readonly requestId: Hex;
  readonly #hooks: Hooks;
  readonly #exchange: TestExchange;
  readonly #endpointId: string;
  readonly #complaints: Complaint[];

  constructor(hooks: Hooks, input: RequestInput & { endpoint?: Endpoint | undefined }, complaints: Complaint[]) {
    const { endpoint = testEndpoint(), unknownEndpoint } = input;
    this.#hooks = hooks;
    this.#exchange = exchangeOf(input);
    if (unknownEndpoint === undefined) control.resolveTo(this.#exchange, endpoint);
    this.#endpointId = unknownEndpoint ?? endpoint.id;
    this.#complaints = complaints;
    this.requestId = this.#exchange.requestId;
  }

  onHttpRequest(): Promise<Outcome<never>> {
    return this.#outcome('onHttpRequest', async () => {
      const rejection = await this.#hooks.ask('onHttpRequest', this.#exchange);
      return rejection === undefined ? { passed: true } : refused(rejection);
    });
  }

  onBeforeApiCall({ parameters }: BeforeApiCallInput = {}): Promise<Outcome<Parameters>> {
    const given = this.#parameters(parameters);
    return this.#outcome('onBeforeApiCall', async () => {
      return changed(await this.#hooks.ask('onBeforeApiCall', given, this.#exchange), given);
    });
  }

  onAfterApiCall(input: AfterApiCallInput = {}): Promise<Outcome<{ data: Json; status: number }>> {
    const { data = null, status = 200 } = input;
    const text = JSON.stringify(data);
    const response = { data: deepFreeze(parseJson(text)), status, text };
    return this.#outcome('onAfterApiCall', async () => {
      const parameters = this.#parameters(input.parameters);
      return changed(await this.#hooks.ask('onAfterApiCall', response, parameters, this.#exchange), response);
    });
  }

  onBeforeSign({ data = `0x${'00'.repeat(32)}` }: BeforeSignInput = {}): Promise<Outcome<Hex>> {
    return this.#outcome('onBeforeSign', async () => {
      return changed(await this.#hooks.ask('onBeforeSign', data, this.#exchange), data);
    });
  }

  /** Resolves when the hook is done; the service does not wait for it. */
  async onResponseSent({ status = 200, duration }: ResponseSentInput = {}): Promise<void> {
    this.#exchange.duration = duration;
    await this.#hooks.ask('onResponseSent', status, this.#exchange);
  }

  /** Resolves when the hook is done; the service does not wait for it. */
  async onError({ status = 502, message = 'API call failed', stage = 'callApi' }: ErrorInput = {}): Promise<void> {
    const refusal = new Refusal(status, message, { stage });
    await this.#hooks.ask('onError', refusal, this.#endpointId, this.#exchange);
  }

  /** Any inner stage, for plugins with `setup`: `request.stage('authenticate', 'token', method)`. */
  stage<N extends InnerStage>(name: N, ...input: StageInput<N>): Promise<Outcome<NonNullable<ResultOf<N>>>> {
    const hasVariants = stageOf(name).variants !== undefined;
    const [variant, given] = hasVariants ? [String(input[0]), input.slice(1)] : ['', [...input]];
    return this.#outcome(name, async () => {
      // The type of `input` has just said what the stage takes.
      const result = await this.#hooks.askAny(name, variant, [...given, this.#exchange] as unknown as ArgsOf<N>);
      return changed(result as NonNullable<ResultOf<N>> | undefined, given[0]);
    });
  }

  /** The client leaves: signals abort. */
  disconnect(): void {
    control.disconnect(this.#exchange);
  }

  #parameters(given: Parameters | undefined): Parameters {
    return given === undefined ? this.#exchange.parameters : frozenCopy(given);
  }

  async #outcome<T>(hook: StageName, run: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    try {
      return await run();
    } catch (error) {
      const refusal = asRefusal(error);
      const { reason } = refusal;
      if (reason !== undefined) this.#complaints.push(complaint(hook, this.requestId, reason));
      return refused(refusal);
    }
  }
}

/** A request whose duration a test may choose. */
class TestExchange extends Exchange {
  #duration: number | undefined;

  set duration(milliseconds: number | undefined) {
    this.#duration = milliseconds;
  }

  override elapsed(): number {
    return this.#duration ?? super.elapsed();
  }
}

function exchangeOf({ parameters, headers = {}, ip = '127.0.0.1' }: RequestInput): TestExchange {
  const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  const exchange = new TestExchange({
    method: 'POST',
    requestId: randomId(),
    route: '/endpoints/:endpointId',
    headers: Object.fromEntries(lowerCase),
    socketAddress: ip,
  });
  if (parameters !== undefined) control.receive(exchange, frozenCopy(parameters));
  return exchange;
}

const nothing = () => undefined;
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

function servicesOf(definition: Definition, { services, config }: HarnessOptions): Services {
  const meters = new MeterRegistry().draft();
  meters.commit();
  const given: Services = {
    config: {},
    endpoints: [testEndpoint()],
    node: '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf',
    credentials: [],
    log: silent,
    now: Date.now,
    states: new StateStore(),
    meters: meters.of(definition.name),
    budget: 'none',
    ask: () => Promise.reject(new Error('a test of one plugin has no endpoints to ask')),
    phase: () => 'serving',
    describe: () =>
      describeService({ config: given.config, endpoints: given.endpoints, plugins: [{ definition, config }] }),
    ...services,
  };
  return given;
}

function parseJson(text: string): Json {
  return JSON.parse(text);
}

/** What a client's JSON would have become. */
function frozenCopy(parameters: Parameters): Parameters {
  return deepFreeze(JSON.parse(JSON.stringify(parameters)));
}

function changed<T>(value: T | undefined, given: unknown): Outcome<T> {
  return value === undefined || value === given ? { passed: true } : { value };
}

function refused({ status, message }: Refusal): Outcome<never> {
  return { refused: { status, message } };
}

function complaint(hook: string, requestId: string, detail: string): Complaint {
  const [message = ''] = detail.split('\n', 1);
  return { hook, requestId, message, detail };
}

function textOf(error: unknown): string {
  if (isRefusal(error)) return error.reason ?? error.message;
  return types.isNativeError(error) ? describe(error) : inspect(error);
}
