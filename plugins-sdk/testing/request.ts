import { control, type Exchange } from '../../kernel/exchange.ts';
import type { Hooks, Observer } from '../../kernel/hooks.ts';
import { asRefusal, isRefusal, Refusal } from '../../kernel/refusal.ts';
import { type Plugin, type PluginSet, routeKey } from '../../kernel/registry.ts';
import { type AroundStage, type StageName, stageNames, stages } from '../../kernel/stages.ts';
import type { Endpoint, RouteRequest } from '../../kernel/values.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import { hint } from '../../lib/suggest.ts';
import type { Complaint, HookOutcome, RequestInput, StageInput, StageOutcome } from './inputs.ts';
import type { TestMetrics } from './metrics.ts';
import type { ServeOptions, ServiceConfig, TestService } from './service.ts';
import { exchangeOf, type TestExchange } from './test-exchange.ts';
import { type AnyInput, inside, valuesOf } from './values.ts';

type Asked = Exclude<StageName, AroundStage>;

/** The plugin under test, with its hooks and surroundings. */
export interface Subject {
  readonly plugin: Plugin;
  /** The endpoint of requests that name none. */
  readonly endpoint: Endpoint;
  readonly hooks: Hooks;
  readonly observer: Observer;
  readonly taps: PluginSet['taps'];
  readonly complaints: Complaint[];
  /** The plugin's work in `services.background`. */
  readonly background: { paid(): Promise<void> };
  readonly metrics: TestMetrics;
  /** Moves the clock of `services.now` forward. */
  advance(milliseconds: number): void;
  /** Makes a service with the plugin in it. */
  serve(config: ServiceConfig, options: ServeOptions): Promise<TestService>;
}

/** A request on its way through the stages, in the order in which the test runs them. */
export class TestRequest {
  readonly requestId: Hex;
  /** The exchange that inner stages get. With context keys, a test can set values that other plugins would have set. */
  readonly exchange: Exchange;
  readonly #subject: Subject;
  readonly #exchange: TestExchange;
  readonly #endpointId: string;
  /** Whether observers were told that the response is out. */
  #isAnswered = false;

  constructor(subject: Subject, input: RequestInput) {
    const { endpoint = subject.endpoint, unknownEndpoint, route } = input;
    this.#subject = subject;
    if (route !== undefined) this.#requireVariant('route', route);
    this.#exchange = exchangeOf(input);
    if (route === undefined && unknownEndpoint === undefined) control.resolveTo(this.#exchange, endpoint);
    this.#endpointId = unknownEndpoint ?? endpoint.id;
    this.exchange = this.#exchange;
    this.requestId = this.exchange.requestId;
  }

  /**
   * Runs the plugin's function at a stage: `request.run('authenticate', { variant: 'token', method })`.
   * It waits for the function even where the service would not.
   * @param input the values that the stage takes, by name; those with a default may be left out.
   * @throws TypeError if there is no such stage, the plugin has no such variant of it, or a value is missing.
   */
  run<N extends StageName>(name: N, input?: StageInput<N>): Promise<StageOutcome<N>>;
  async run(name: StageName, input: AnyInput = {}): Promise<HookOutcome<unknown>> {
    if (!stageNames.includes(name))
      throw new TypeError(`there is no stage "${name}"${hint(name, stageNames, 'they are')}`);
    const { method, route: path } = this.exchange;
    const { variant = name === 'route' ? routeKey({ method, path }) : '' } = input;
    if (stages[name].variants !== undefined) this.#requireVariant(name, variant);
    const values = valuesOf(name, input, this.#exchange, this.#endpointId);
    this.#exchange.duration = input.duration;
    try {
      const value = await this.#ask(name, values, variant, input.next);
      if (isRefusal(value)) return this.#refused(value);
      return value === undefined || value === values[0] ? { passed: true } : { value };
    } catch (error) {
      const refusal = asRefusal(error);
      const { reason } = refusal;
      if (reason !== undefined) this.#subject.complaints.push(complaint(name, this.requestId, reason));
      return this.#refused(refusal);
    }
  }

  #requireVariant(name: StageName, variant: string): void {
    const variants = this.#subject.taps[name].flatMap((tap) => tap.variant ?? []);
    if (!variants.includes(variant))
      throw new TypeError(`the plugin has no "${name}" of "${variant}"${hint(variant, variants, 'variants')}`);
  }

  async #ask(name: StageName, values: readonly unknown[], variant: string, next: AnyInput['next']): Promise<unknown> {
    const [first] = values;
    if (stages[name].kind === 'around') return this.#askAround(name as AroundStage, first, next);
    if (name === 'route') return this.#askRoute(first as RouteRequest, variant);
    // Observers get the status of the response first, as in the service.
    if (name === 'onResponseSent') this.#respond(Number(first));
    if (isRefusal(first)) this.#respond(first.status);
    // The type of `input` ensures that these are the stage's arguments.
    const args = [...values, this.#exchange] as never;
    return this.#subject.hooks[name as Asked].ask(args, variant);
  }

  async #askRoute(request: RouteRequest, variant: string): Promise<unknown> {
    const { maxBody = 0 } = this.#subject.plugin.routes?.find((route) => routeKey(route) === variant) ?? {};
    if (maxBody > 0 && request.body.length > maxBody) throw new Refusal(413, 'Request body too large');
    const given = maxBody > 0 ? request : { ...request, body: Buffer.alloc(0) };
    const value = await this.#subject.hooks.route.ask([given, this.#exchange], variant);
    if (value === undefined) throw new Error('a route has to answer');
    this.#respond(value.status);
    return value;
  }

  async #askAround(name: AroundStage, given: unknown, next: AnyInput['next']): Promise<unknown> {
    const hooks = this.#subject.hooks[name];
    const inner = async (value: unknown) => {
      try {
        return await (next ?? inside[name])(value as never, this.#exchange.endpoint.id);
      } catch (error) {
        throw asRefusal(error, name);
      }
    };
    const value = await hooks.askAround(given as never, this.#exchange, inner as never);
    return hooks.isTapped() ? value : undefined;
  }

  /** Reports the response to observers, once. */
  #respond(status: number): void {
    if (!this.#isAnswered) this.#subject.observer.response?.(this.#exchange, status);
    this.#isAnswered = true;
  }

  /** Returns the outcome of a refusal. `deepEqual` compares its status and message alone: headers and body are not enumerable. */
  #refused({ status, message, headers, body }: Refusal): HookOutcome<never> {
    this.#respond(status);
    const outcome = { status, message, headers, body };
    for (const name of ['headers', 'body']) Object.defineProperty(outcome, name, { enumerable: false });
    return { refused: outcome };
  }
}

/** Makes a complaint, whose message is the first line of its detail. */
export function complaint(hook: string, requestId: string, detail: string): Complaint {
  const [message = ''] = detail.split('\n', 1);
  return { hook, requestId, message, detail };
}
