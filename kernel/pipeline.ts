import { setImmediate as immediate } from 'node:timers/promises';
import { control, type Exchange } from './exchange.ts';
import type { Hooks } from './hooks.ts';
import { asRefusal, at, type Refusal, refusals } from './refusal.ts';
import type { StageName } from './stages.ts';
import type {
  ApiResponse,
  AuthMethod,
  Awaitable,
  Headers,
  HttpRequest,
  HttpResponse,
  Outcome,
  Parameters,
  RouteRequest,
  Run,
  SignedParts,
  SignedResponse,
} from './values.ts';
import { WaitGroup } from './wait-group.ts';

export interface Runtime {
  /** Epoch milliseconds. */
  now(): number;
  /** Makes the answer that clients get. */
  serialize(parts: SignedParts): SignedResponse;
  /** Told of every refusal and failure with what really happened. */
  failed(exchange: Exchange, refusal: Refusal): void;
}

/** A request to an endpoint. */
export interface EndpointRequest {
  readonly exchange: Exchange;
  /** The endpoint's id as the client sent it. */
  readonly id: string;
  /** The HTTP request, whose body is not read for an unknown endpoint; without one the exchange has its parameters already. */
  readonly httpRequest?: HttpRequest | undefined;
  /** Takes what must wait until the response is on its way. */
  later(task: () => void): void;
}

/** Runs requests through the stages, in the order of the table of stages. */
export class Pipeline {
  readonly #hooks: Hooks;
  readonly #runtime: Runtime;
  /** Runs and observers under way. */
  readonly #running = new WaitGroup();

  constructor(hooks: Hooks, runtime: Runtime) {
    this.#hooks = hooks;
    this.#runtime = runtime;
  }

  /** Resolves when all work, detached runs and observers included, is done. */
  drained(): Promise<void> {
    return this.#running.wait();
  }

  /** May the client come in at all? @throws Refusal */
  admit(exchange: Exchange): Awaitable<unknown> {
    return this.#hooks.ask('admit', exchange);
  }

  /** @param key of the route. @throws Refusal */
  async route(key: string, request: RouteRequest, exchange: Exchange): Promise<HttpResponse> {
    const response = await this.#hooks.askFor('route', key, request, exchange);
    return response ?? refuse('route', refusals.internal(`nothing serves ${key}`));
  }

  /** The headers of any response, if there are any. */
  headers(exchange: Exchange): Awaitable<Headers | undefined> {
    return this.#hooks.ask('respond', none, exchange);
  }

  /** One request, from its endpoint's id to the response. @throws Refusal */
  serve(request: EndpointRequest): Promise<HttpResponse> {
    return new RequestLifecycle(this.#hooks, this.#runtime, this.#running, request).serve();
  }
}

const none: Headers = Object.freeze({});

function refuse(stage: StageName, refusal: Refusal): never {
  throw at(stage, refusal);
}

/** One request's way through the stages. */
class RequestLifecycle {
  readonly #hooks: Hooks;
  readonly #runtime: Runtime;
  readonly #running: WaitGroup;
  readonly #exchange: Exchange;
  readonly #request: EndpointRequest;
  #isDetached = false;
  /** Whether the outcome is known to those who wait for it. */
  #isSettled = false;
  /** The refusal that it ended with, if it did. */
  #refusal: Refusal | undefined;

  constructor(hooks: Hooks, runtime: Runtime, running: WaitGroup, request: EndpointRequest) {
    this.#hooks = hooks;
    this.#runtime = runtime;
    this.#running = running;
    this.#request = request;
    this.#exchange = request.exchange;
  }

  async serve(): Promise<HttpResponse> {
    const [hooks, exchange] = [this.#hooks, this.#exchange];
    const { id, httpRequest } = this.#request;
    this.#running.add();
    try {
      // Which endpoint is meant?
      const endpoint = await hooks.ask('resolve', id, exchange);
      control.resolveTo(exchange, endpoint ?? refuse('resolve', refusals.endpointNotFound()));
      // What does the client say?
      const sent = httpRequest && (await hooks.ask('read', httpRequest, exchange));
      if (sent !== undefined) control.receive(exchange, sent);
      // May a plugin reject it?
      const rejection = await hooks.ask('onHttpRequest', exchange);
      if (rejection !== undefined) refuse('onHttpRequest', rejection);
      // Who is asking?
      await this.#authenticate(exchange.endpoint.auth);
      // Are the parameters complete and sound?
      const parameters = (await hooks.ask('validate', exchange.parameters, exchange)) ?? exchange.parameters;
      // The mode decides when the rest runs and how the answer travels.
      const { mode } = exchange.endpoint;
      const response = await hooks.askFor('deliver', mode, this.#once(parameters), exchange);
      return response ?? refuse('deliver', refusals.internal(`mode "${mode}" has no provider`));
    } catch (error) {
      throw await this.#conclude(asRefusal(error));
    } finally {
      this.#running.done();
    }
  }

  /** Any one method is enough; when all fail, the last one's refusal is the answer. */
  async #authenticate(methods: readonly AuthMethod[]): Promise<void> {
    let last: Refusal | undefined;
    for (const method of methods) {
      try {
        if (await this.#hooks.askFor('authenticate', method.type, method, this.#exchange)) return;
      } catch (error) {
        last = asRefusal(error);
      }
    }
    throw at('authenticate', last ?? refusals.unauthenticated());
  }

  #once(parameters: Parameters): Run {
    let running: Promise<SignedResponse> | undefined;
    return ({ detached = false } = {}) => {
      if (running !== undefined) throw new Error('the rest of the pipeline runs once');
      if (this.#isSettled) throw new Error('the request has ended');
      if (detached) {
        this.#isDetached = true;
        control.detach(this.#exchange);
      }
      running = this.#finish(parameters);
      // A mode may drop it: what went wrong is concluded by then.
      running.catch(() => undefined);
      return running;
    };
  }

  async #finish(parameters: Parameters): Promise<SignedResponse> {
    const [hooks, exchange] = [this.#hooks, this.#exchange];
    this.#running.add();
    try {
      // Is the answer known already?
      const known = await hooks.ask('lookup', parameters, exchange);
      const response = known ?? (await this.#produce(parameters));
      // May it go out? Until then nobody sees or keeps it.
      await hooks.ask('release', response, exchange);
      if (known === undefined) await this.#store(response);
      // It is certain now, and nobody has seen it yet.
      await this.#settle({ kind: 'signed', response });
      if (hooks.isTapped('onResponseSent')) {
        this.#later(() => {
          if (this.#refusal === undefined) this.#watch(hooks.ask('onResponseSent', 200, exchange));
        });
      }
      return response;
    } catch (error) {
      throw await this.#conclude(asRefusal(error));
    } finally {
      this.#running.done();
    }
  }

  async #produce(given: Parameters): Promise<SignedResponse> {
    const [hooks, exchange] = [this.#hooks, this.#exchange];
    // Plugins may change what is asked.
    const parameters = (await hooks.ask('onBeforeApiCall', given, exchange)) ?? given;
    // Ask the upstream.
    const fetched = await hooks.ask('callApi', parameters, exchange);
    if (fetched === undefined) throw at('callApi', refusals.internal('nothing calls the API'));
    // Plugins may change what it said; an error status is never signed, whoever set it.
    const response = (await hooks.ask('onAfterApiCall', fetched, parameters, exchange)) ?? fetched;
    if (response.status < 200 || response.status > 299)
      throw at('onAfterApiCall', refusals.upstreamStatus(response.status));
    this.#assertOpen();
    await hooks.ask('fetched', response, exchange);
    return this.#sign(response);
  }

  /** Keeps it for others. */
  #store(response: SignedResponse): Awaitable<void> {
    this.#assertOpen();
    return this.#hooks.ask('store', response, this.#exchange);
  }

  async #sign(response: ApiResponse): Promise<SignedResponse> {
    const [hooks, exchange] = [this.#hooks, this.#exchange];
    // What is signed, and what is shown?
    const encoded = await hooks.ask('encode', response, exchange);
    const { bytes, field, value } = encoded ?? refuse('encode', refusals.internal('nothing encodes the answer'));
    // Only bytes that are shown as they are signed may still change.
    const isShown = value === bytes;
    const encrypted = (isShown && (await hooks.ask('encrypt', bytes, exchange))) || bytes;
    const data = (isShown && (await hooks.ask('onBeforeSign', encrypted, exchange))) || encrypted;
    // Vouch for it.
    this.#assertOpen();
    const endpointId = exchange.endpoint.id;
    const timestamp = Math.floor(this.#runtime.now() / 1000);
    const signed = await hooks.ask('sign', Object.freeze({ endpointId, timestamp, data, isHash: !isShown }), exchange);
    const { node, signature, beside } = signed ?? refuse('sign', refusals.internal('nothing signs the answer'));
    // Have somebody else vouch for the upstream.
    const proof = await hooks.ask('prove', exchange);
    const shown = isShown ? data : value;
    return this.#runtime.serialize({ node, signature, beside, endpointId, timestamp, field, value: shown, proof });
  }

  /** A mode may have given up without waiting: what was refused is neither signed nor kept. */
  #assertOpen(): void {
    if (this.#isSettled) throw at('sign', refusals.internal('the request has ended'));
  }

  /** Settles a failure once, before anyone can see it, and has it observed. */
  async #conclude(refusal: Refusal): Promise<Refusal> {
    if (refusal === this.#refusal) return refusal;
    const exchange = this.#exchange;
    if (this.#refusal !== undefined) {
      // A mode answers in its own words; who is told later hears what the client heard.
      this.#refusal = refusal;
      if (!exchange.abandoned) this.#runtime.failed(exchange, refusal);
      return refusal;
    }
    const { abandoned } = exchange;
    await this.#settle(abandoned ? { kind: 'abandoned' } : { kind: 'refused', refusal });
    this.#refusal = abandoned ? at(refusal.stage ?? 'deliver', refusals.abandoned()) : refusal;
    if (abandoned) return this.#refusal;
    this.#runtime.failed(exchange, refusal);
    this.#later(() => {
      const last = this.#refusal ?? refusal;
      if (last.failure && last.stage !== undefined)
        this.#watch(this.#hooks.ask('onError', last, this.#request.id, exchange));
    });
    return refusal;
  }

  #settle(outcome: Outcome): Awaitable<void> {
    if (this.#isSettled) return undefined;
    this.#isSettled = true;
    return this.#hooks.ask('settle', Object.freeze(outcome), this.#exchange);
  }

  /** Does what must not delay the response. */
  #later(task: () => void): void {
    if (this.#isDetached) this.#watch(immediate().then(task));
    else this.#request.later(task);
  }

  /** Keeps the service from ending before a task does. */
  async #watch(task: Awaitable<unknown>): Promise<void> {
    this.#running.add();
    try {
      await task;
    } finally {
      this.#running.done();
    }
  }
}
