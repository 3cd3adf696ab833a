import { isDeepStrictEqual } from 'node:util';
import { control, type Exchange } from '../../kernel/exchange.ts';
import type { Hooks, Observer } from '../../kernel/hooks.ts';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';
import { type Plugin, type PluginSet, type Route, routeKey } from '../../kernel/registry.ts';
import {
  type ArgsOf,
  type AroundStage,
  type AroundValue,
  type ResultOf,
  type StageName,
  stageNames,
  stageOf,
} from '../../kernel/stages.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import { deepFreeze } from '../../lib/objects/deep-freeze.ts';
import { hint } from '../../lib/text/suggest.ts';
import type { ApiResponse, Awaitable, Endpoint, HttpResponse, Json, Parameters } from '../kernel.ts';
import { SignedResponse } from '../signed-response.ts';
import { apiResponse, outgoingFor, sample, signedAnswer, testQuestion } from './around.ts';
import { testEndpoint } from './endpoint.ts';
import { changed, complaint, refused } from './hook-outcome.ts';
import type {
  AfterApiCallInput,
  AnswerInput,
  BeforeApiCallInput,
  BeforeSignInput,
  CallApiInput,
  Complaint,
  ErrorInput,
  HookOutcome,
  NamedStage,
  RequestInput,
  ResponseSentInput,
  RouteInput,
  StageInput,
} from './inputs.ts';
import type { TestMetrics } from './metrics.ts';
import type { ServeOptions, ServiceConfig, TestService } from './service.ts';
import type { TestClock } from './test-clock.ts';
import { exchangeOf, frozenCopy, type TestExchange } from './test-exchange.ts';

const NAMED: readonly string[] = stageNames.filter((name) => {
  const { context, kind } = stageOf(name);
  return context === undefined && kind !== 'around';
});

/** The plugin that is tested, in its registry. */
export interface Subject {
  readonly plugin: Plugin;
  /** Where requests go that name none. */
  readonly endpoint: Endpoint;
  readonly hooks: Hooks;
  readonly observer: Observer;
  readonly taps: PluginSet['taps'];
  readonly complaints: Complaint[];
  /** What the plugin has left to `services.background`. */
  readonly background: { ended(): Promise<void> };
  readonly clock: TestClock;
  readonly metrics: TestMetrics;
  /** Makes a service with the plugin in it. */
  serve(config: ServiceConfig, options: ServeOptions): Promise<TestService>;
}

/** One request on its way through the hooks, in whatever order the test calls them. */
export class TestRequest {
  readonly requestId: Hex;
  /** As inner stages get it: a test may leave on it what other plugins would have left, with their context keys. */
  readonly exchange: Exchange;
  readonly #subject: Subject;
  readonly #hooks: Hooks;
  readonly #exchange: TestExchange;
  readonly #endpointId: string;
  /** Whether the response is on its way, as observers see it. */
  #isAnswered = false;

  /** @param route that it is made to; default that of endpoints. */
  constructor(subject: Subject, input: RequestInput, route?: Pick<Route, 'method' | 'path'>) {
    const { endpoint = testEndpoint(), unknownEndpoint } = input;
    this.#subject = subject;
    this.#hooks = subject.hooks;
    this.#exchange = exchangeOf(input, route);
    if (route === undefined && unknownEndpoint === undefined) control.resolveTo(this.#exchange, endpoint);
    this.#endpointId = unknownEndpoint ?? endpoint.id;
    this.exchange = this.#exchange;
    this.requestId = this.exchange.requestId;
  }

  onHttpRequest(): Promise<HookOutcome<never>> {
    return this.#outcome('onHttpRequest', async () => {
      const rejection = await this.#hooks.ask('onHttpRequest', [this.#exchange]);
      return rejection === undefined ? { passed: true } : refused(rejection);
    });
  }

  onBeforeApiCall({ parameters }: BeforeApiCallInput = {}): Promise<HookOutcome<Parameters>> {
    const given = this.#parameters(parameters);
    return this.#ask('onBeforeApiCall', given, [given, this.#exchange]);
  }

  onAfterApiCall(input: AfterApiCallInput = {}): Promise<HookOutcome<{ data: Json; status: number }>> {
    const { data = null, status = 200 } = input;
    const text = JSON.stringify(data);
    const response = { data: deepFreeze(parseJson(text)), status, text };
    return this.#ask('onAfterApiCall', response, [response, this.#parameters(input.parameters), this.#exchange]);
  }

  onBeforeSign({ data = `0x${'00'.repeat(32)}` }: BeforeSignInput = {}): Promise<HookOutcome<Hex>> {
    return this.#ask('onBeforeSign', data, [data, this.#exchange]);
  }

  /** Resolves when the hook is done; the service does not wait for it. */
  async onResponseSent({ status = 200, duration, answer }: ResponseSentInput = {}): Promise<void> {
    this.#exchange.duration = duration;
    this.#respond(status);
    const sent = SignedResponse.parse(JSON.stringify({ ...sample, endpointId: this.#endpointId, ...answer }));
    await this.#hooks.ask('onResponseSent', [status, sent, this.#exchange]);
  }

  /** Resolves when the hook is done; the service does not wait for it. */
  async onError({ status = 502, message = 'API call failed', stage = 'callApi' }: ErrorInput = {}): Promise<void> {
    const refusal = new Refusal(status, message, { stage });
    this.#respond(status);
    await this.#hooks.ask('onError', [refusal, this.#endpointId, this.#exchange]);
  }

  /**
   * Any inner stage, for plugins with `setup`: `request.stage('authenticate', 'token', method)`.
   * @throws TypeError when there is no such stage, or the plugin has no such variant of it.
   */
  async stage<N extends NamedStage>(name: N, ...input: StageInput<N>): Promise<HookOutcome<NonNullable<ResultOf<N>>>> {
    if (!NAMED.includes(name)) throw new TypeError(`there is no inner stage "${name}"${hint(name, NAMED, 'they are')}`);
    const hasVariants = stageOf(name).variants !== undefined;
    const [variant, asked] = hasVariants ? [String(input[0]), input.slice(1)] : ['', [...input]];
    const variants = this.#subject.taps[name].flatMap((tap) => tap.variant ?? []);
    if (hasVariants && !variants.includes(variant))
      throw new TypeError(`the plugin has no "${name}" of "${variant}"${hint(variant, variants, 'variants')}`);
    const given: unknown[] = name === 'authenticate' ? [this.#known(asked[0])] : asked;
    // The type of `input` has just said what the stage takes.
    return this.#ask(name, given[0], [...given, this.#exchange] as unknown as ArgsOf<N>, variant);
  }

  /** @param given what goes on where the plugin returns nothing else. */
  #ask<N extends Exclude<StageName, AroundStage>>(name: N, given: unknown, args: ArgsOf<N>, variant?: string) {
    return this.#outcome(name, async () => {
      const result = await this.#hooks.ask(name, args, variant);
      return changed(result as NonNullable<ResultOf<N>> | undefined, given);
    });
  }

  /** The stage `answer`, with something inside. */
  answer({ question = testQuestion(), next }: AnswerInput = {}): Promise<HookOutcome<SignedResponse>> {
    return this.#around('answer', question, next ?? ((asked) => signedAnswer(asked, this.#exchange.endpoint.id)));
  }

  /** The stage `callApi`, with something inside. */
  callApi({ request, next = apiResponse }: CallApiInput = {}): Promise<HookOutcome<ApiResponse>> {
    return this.#around('callApi', outgoingFor(request), next);
  }

  #around<N extends AroundStage>(
    name: N,
    given: AroundValue<N>,
    next: (value: AroundValue<N>) => Awaitable<ResultOf<N>>,
  ): Promise<HookOutcome<ResultOf<N>>> {
    const inner = async (value: AroundValue<N>) => {
      try {
        return await next(value);
      } catch (error) {
        throw asRefusal(error, name);
      }
    };
    return this.#outcome(name, async () => {
      const value = await this.#hooks.askAround(name, given, this.#exchange, inner);
      return this.#hooks.isTapped(name) ? { value } : { passed: true };
    });
  }

  /** What the handler of a route makes of it: see {@link PluginHarness.route}. */
  route(
    { maxBody = 0, ...route }: Route,
    { params = {}, query, body = '' }: RouteInput,
  ): Promise<HookOutcome<HttpResponse>> {
    const bytes = Buffer.from(body);
    const request = { params, query: new URLSearchParams(query), body: maxBody > 0 ? bytes : Buffer.alloc(0) };
    return this.#outcome('route', async () => {
      if (maxBody > 0 && bytes.length > maxBody) throw new Refusal(413, 'Request body too large');
      const value = await this.#hooks.ask('route', [request, this.#exchange], routeKey(route));
      if (value === undefined) throw new Error('a route has to answer');
      this.#respond(value.status);
      return { value };
    });
  }

  /** The endpoint's own method of that kind, since `perMethod` finds what it has prepared by the object. */
  #known(method: unknown): unknown {
    const own = this.#exchange.resolved?.auth ?? [];
    return own.find((each) => isDeepStrictEqual(each, method)) ?? method;
  }

  /** The client leaves: signals abort. */
  disconnect(): void {
    control.disconnect(this.#exchange);
    this.#respond(499);
  }

  /** Observers are told of it once. */
  #respond(status: number): void {
    if (!this.#isAnswered) this.#subject.observer.response?.(this.#exchange, status);
    this.#isAnswered = true;
  }

  #parameters(given: Parameters | undefined): Parameters {
    return given === undefined ? this.#exchange.parameters : frozenCopy(given);
  }

  async #outcome<T>(hook: StageName, run: () => Promise<HookOutcome<T>>): Promise<HookOutcome<T>> {
    try {
      const outcome = await run();
      if ('refused' in outcome) this.#respond(outcome.refused.status);
      return outcome;
    } catch (error) {
      const refusal = asRefusal(error);
      const { reason } = refusal;
      if (reason !== undefined) this.#subject.complaints.push(complaint(hook, this.requestId, reason));
      this.#respond(refusal.status);
      return refused(refusal);
    }
  }
}

function parseJson(text: string): Json {
  return JSON.parse(text);
}
