import { setImmediate as immediate } from 'node:timers/promises';
import { onAbort } from './client-signal.ts';
import { control, type Exchange } from './exchange.ts';
import type { Hooks } from './hooks.ts';
import { type Produce, requireOpen, type Signing } from './produce.ts';
import { asRefusal, type Refusal, refusals, refuse } from './refusal.ts';
import type {
  AuthMethod,
  Awaitable,
  BodyStream,
  HttpRequest,
  HttpResponse,
  Question,
  RequestOutcome,
  Run,
  SignedResponse,
} from './values.ts';

export interface Runtime extends Signing {
  /** Told of every refusal and failure with what really happened. */
  failed(exchange: Exchange, refusal: Refusal): void;
}

/** A request to an endpoint. */
export interface EndpointRequest {
  readonly exchange: Exchange;
  /** The endpoint's id as the client sent it. */
  readonly id: string;
  /** The mode in which it is answered, in place of the endpoint's. */
  readonly mode?: string | undefined;
  /** The HTTP request, whose body is not read for an unknown endpoint; without one the exchange has its parameters already. */
  readonly httpRequest?: HttpRequest | undefined;
  /** Runs a task once the response is on its way. */
  later(task: () => void): void;
}

/** What the requests of a pipeline share. */
export interface RequestServices {
  readonly hooks: Hooks;
  readonly runtime: Runtime;
  readonly produce: Produce;
  /** Modes that may run the rest of the pipeline again. */
  readonly repeats: ReadonlySet<string>;
}

/** One request's way through the stages. What is there at once is not awaited: each `await` costs as much as a short stage. */
export class RequestLifecycle {
  readonly #pipeline: RequestServices;
  readonly #exchange: Exchange;
  readonly #request: EndpointRequest;
  /** Whether observers need not wait for the client's response: the work goes on without it. */
  #isUntied = false;
  /** Whether the mode has begun to answer, and whether it has ended. */
  #hasRun = false;
  #hasEnded = false;
  /** The refusal that it ended with, if it did. */
  #refusal: Refusal | undefined;

  constructor(pipeline: RequestServices, request: EndpointRequest) {
    this.#pipeline = pipeline;
    this.#request = request;
    this.#exchange = request.exchange;
  }

  /** @throws Refusal */
  async serve(): Promise<HttpResponse> {
    const { hooks } = this.#pipeline;
    hooks.running.add();
    try {
      const presented = this.#presented(await this.#respond());
      return presented instanceof Promise ? await presented : presented;
    } catch (error) {
      this.#hasEnded = true;
      throw await this.#conclude(asRefusal(error));
    } finally {
      hooks.running.done();
    }
  }

  async #respond(): Promise<HttpResponse> {
    const { hooks } = this.#pipeline;
    const exchange = this.#exchange;
    const { id, httpRequest } = this.#request;
    // Which endpoint is meant?
    let endpoint = hooks.ask('resolve', id, exchange);
    if (endpoint instanceof Promise) endpoint = await endpoint;
    control.resolveTo(exchange, endpoint ?? refuse('resolve', refusals.endpointNotFound()));
    // What does the client say?
    const sent = httpRequest && (await hooks.ask('parseBody', httpRequest, exchange));
    if (sent !== undefined) control.receive(exchange, sent);
    // May a plugin reject it?
    let rejection = hooks.ask('onHttpRequest', exchange);
    if (rejection instanceof Promise) rejection = await rejection;
    if (rejection !== undefined) refuse('onHttpRequest', rejection);
    // Who is asking?
    const authenticated = this.#authenticate(exchange.endpoint.auth);
    if (authenticated instanceof Promise) await authenticated;
    // What is asked? From here on, this one value says it.
    let parameters = hooks.ask('validate', exchange.parameters, exchange);
    if (parameters instanceof Promise) parameters = await parameters;
    parameters ??= exchange.parameters;
    let variation = hooks.ask('vary', '', exchange);
    if (variation instanceof Promise) variation = await variation;
    let prepared = hooks.ask('prepare', parameters, variation ?? '', exchange);
    if (prepared instanceof Promise) prepared = await prepared;
    const question = prepared ?? refuse('prepare', refusals.internal('nothing prepares the question'));
    // The mode decides when the rest runs and how the answer travels.
    const mode = this.#mode;
    const response = await hooks.askFor('present', mode, this.#runOf(question), exchange);
    return response ?? refuse('present', refusals.internal(`mode "${mode}" has no provider`));
  }

  get #mode(): string {
    return this.#request.mode ?? this.#exchange.endpoint.mode;
  }

  /** Any one method is enough; when all fail, the last one's refusal is the answer. @param index the method that is asked first. */
  #authenticate(methods: readonly AuthMethod[], index = 0, last?: Refusal): Awaitable<void> {
    const method = methods[index];
    if (method === undefined) refuse('authenticate', last ?? refusals.unauthenticated());
    const goOn = (error: unknown = last) =>
      this.#authenticate(methods, index + 1, error === undefined ? undefined : asRefusal(error));
    let isAllowed: Awaitable<true | undefined>;
    try {
      isAllowed = this.#pipeline.hooks.askFor('authenticate', method.type, method, this.#exchange);
    } catch (error) {
      return goOn(error);
    }
    if (isAllowed instanceof Promise) return isAllowed.then((late) => (late ? undefined : goOn()), goOn);
    return isAllowed ? undefined : goOn();
  }

  #runOf(question: Question): Run {
    return ({ detached = false, after } = {}) => {
      const isAgain = this.#hasRun;
      const repeats = this.#pipeline.repeats.has(this.#mode);
      if (isAgain && !repeats) throw new Error('the rest of the pipeline runs once');
      if (this.#hasEnded) throw new Error('the request has ended');
      this.#hasRun = true;
      this.#isUntied ||= detached || repeats;
      if (detached) control.detach(this.#exchange);
      const running = isAgain ? this.#again(question, after) : this.#answer(question, after);
      // A mode may drop it: what went wrong is concluded by then.
      running.catch(() => undefined);
      return running;
    };
  }

  /** Each further run is a request of its own, on the same client's behalf. */
  async #again(question: Question, after: Promise<unknown> | undefined): Promise<SignedResponse> {
    const exchange = control.fork(this.#exchange);
    const ended = onAbort(this.#exchange.client, () => control.disconnect(exchange));
    const run = new RequestLifecycle(this.#pipeline, { exchange, id: this.#request.id, later: (task) => task() });
    run.#isUntied = true;
    return run.#answer(question, after).finally(ended);
  }

  async #answer(question: Question, after: Promise<unknown> | undefined): Promise<SignedResponse> {
    const { hooks, produce } = this.#pipeline;
    const exchange = this.#exchange;
    hooks.running.add();
    try {
      if (after !== undefined) await after;
      const answering = hooks.askAround('answer', question, exchange, produce);
      const response = answering instanceof Promise ? await answering : answering;
      // May it go out? No client sees it before. A request that was refused meanwhile gets no approval, since nobody pays for it.
      requireOpen(exchange, 'approve');
      const approved = hooks.ask('approve', response, exchange);
      if (approved instanceof Promise) {
        await approved;
        requireOpen(exchange, 'approve');
      }
      // It is certain now, and nobody has seen it yet.
      const told = this.#tellOutcome({ kind: 'signed', response });
      if (told instanceof Promise) await told;
      if (hooks.isTapped('onResponseSent')) this.#later(() => this.#sent(response));
      return response;
    } catch (error) {
      throw await this.#conclude(asRefusal(error));
    } finally {
      hooks.running.done();
    }
  }

  #sent(response: SignedResponse): Awaitable<unknown> {
    if (this.#refusal !== undefined) return undefined;
    return this.#pipeline.hooks.ask('onResponseSent', 200, response, this.#exchange);
  }

  /** A mode may go on to answer while its body streams: it ends when nobody waits for more. */
  #presented(response: HttpResponse): Awaitable<HttpResponse> {
    const { running } = this.#pipeline.hooks;
    if (isStream(response.body)) onAbort(this.#exchange.client, () => void running.track(() => this.#ended()));
    else if (this.#hasRun) this.#hasEnded = true;
    else return this.#ended().then(() => response);
    return response;
  }

  /** A mode that ends without a run is concluded as refused. */
  async #ended(): Promise<void> {
    this.#hasEnded = true;
    if (!this.#hasRun) await this.#tellOutcome({ kind: 'refused', refusal: refusals.unanswered() });
  }

  /** Concludes a failure once, before anyone can see it, and has it observed. */
  async #conclude(refusal: Refusal): Promise<Refusal> {
    if (refusal === this.#refusal) return refusal;
    const exchange = this.#exchange;
    const { hooks, runtime } = this.#pipeline;
    if (this.#refusal !== undefined) {
      // A mode answers in its own words; who is told later hears what the client heard.
      if (exchange.abandoned) return refusal;
      this.#refusal = refusal;
      runtime.failed(exchange, refusal);
      return refusal;
    }
    const { abandoned } = exchange;
    await this.#tellOutcome(abandoned ? { kind: 'abandoned' } : { kind: 'refused', refusal });
    this.#refusal = abandoned ? asRefusal(refusals.abandoned(), refusal.stage ?? 'present') : refusal;
    if (abandoned) return this.#refusal;
    runtime.failed(exchange, refusal);
    this.#later(() => {
      const last = this.#refusal ?? refusal;
      return last.stage === undefined ? undefined : hooks.ask('onError', last, this.#request.id, exchange);
    });
    return refusal;
  }

  #tellOutcome(outcome: RequestOutcome): Awaitable<void> {
    if (!control.conclude(this.#exchange, outcome)) return undefined;
    return this.#pipeline.hooks.ask('concluded', outcome, this.#exchange);
  }

  /** Does what must not delay the response, and what a stop waits for. */
  #later(task: () => Awaitable<unknown>): void {
    const { running } = this.#pipeline.hooks;
    if (this.#isUntied) void running.track(() => immediate().then(task));
    else this.#request.later(() => void running.track(task));
  }
}

export function isStream(body: HttpResponse['body']): body is BodyStream {
  return typeof body === 'object' && Symbol.asyncIterator in body;
}
