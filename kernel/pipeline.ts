import { setImmediate as immediate } from 'node:timers/promises';
import { Answer } from './answer.ts';
import { control, type Exchange, type Parameters } from './exchange.ts';
import { JsonText, trustedJson } from './json-text.ts';
import type { Observer, StageEvent } from './observer.ts';
import { asRefusal, at, type Refusal, refusals } from './refusal.ts';
import type { Sealed } from './registry.ts';
import type {
  AnyHook,
  ApiResponse,
  Arrival,
  Awaitable,
  Headers,
  Hooks,
  Outcome,
  Reply,
  Run,
  StageArgs,
  StageName,
  StageOut,
} from './stages.ts';
import { Tally } from './tally.ts';

export interface Runtime {
  /** Epoch milliseconds. */
  now(): number;
  /** Told of every refusal and failure with what really happened. */
  failed(exchange: Exchange, refusal: Refusal): void;
}

/**
 * Runs requests through the stages, in the order of the stage table. It awaits nothing but promises: most plugins answer at
 * once, and a turn of the microtask queue for each of them would cost more than many of them do.
 */
export class Pipeline {
  readonly #hooks: Hooks;
  readonly #observer: Observer;
  readonly #runtime: Runtime;
  /** Runs and observers under way. */
  readonly #running = new Tally();

  constructor(sealed: Sealed, runtime: Runtime) {
    this.#hooks = sealed.hooks;
    this.#observer = sealed.house.observer;
    this.#runtime = runtime;
  }

  /** Answers when all work, detached runs and observers included, is done. */
  drained(): Promise<void> {
    return this.#running.ended();
  }

  /** May the client come in at all? @throws Refusal */
  admit(exchange: Exchange): Awaitable<unknown> {
    return this.#ask('admit', exchange);
  }

  /** The headers of any response, if there are any. */
  headers(exchange: Exchange): Awaitable<Headers | undefined> {
    return this.#ask('respond', none, exchange);
  }

  /**
   * One request, from its endpoint id to the reply.
   * @param arrival the HTTP request; its body is not read for an unknown endpoint.
   * @param later takes what must wait until the reply is on its way.
   * @throws Refusal
   */
  async serve(exchange: Exchange, id: string, arrival: Arrival, later: Later): Promise<Reply> {
    const state: State = { settled: false, later, id };
    try {
      // Which endpoint is meant?
      let endpoint = this.#ask('resolve', id, exchange);
      if (endpoint instanceof Promise) endpoint = await endpoint;
      if (endpoint === undefined) throw at('resolve', refusals.endpointNotFound());
      control.resolveTo(exchange, endpoint);
      // What does the client say?
      let given = this.#ask('read', arrival, exchange);
      if (given instanceof Promise) given = await given;
      if (given !== undefined) control.receive(exchange, given);
      // May a plugin reject it?
      let rejection = this.#ask('onHttpRequest', exchange);
      if (rejection instanceof Promise) rejection = await rejection;
      if (rejection !== undefined) throw at('onHttpRequest', rejection);
      // Who is asking? Any one method is enough.
      const authentication = this.#authenticate(exchange);
      if (authentication instanceof Promise) await authentication;
      // Are the parameters complete and sound?
      let parameters = this.#ask('validate', exchange.parameters, exchange);
      if (parameters instanceof Promise) parameters = await parameters;
      // The mode decides when the rest runs and how the answer travels.
      const run = this.#once(exchange, parameters ?? {}, state);
      let reply = this.#askVariant('deliver', endpoint.mode, run, exchange);
      if (reply instanceof Promise) reply = await reply;
      if (reply === undefined) throw at('deliver', refusals.internal(`mode "${endpoint.mode}" has no provider`));
      return reply;
    } catch (error) {
      throw await this.#conclude(exchange, state, asRefusal(error));
    }
  }

  /** Any success authenticates; when all fail, the last method's refusal is the answer. */
  #authenticate(exchange: Exchange, turn = 0, last?: Refusal): Awaitable<void> {
    const method = exchange.endpoint.auth[turn];
    if (method === undefined) throw at('authenticate', last ?? refusals.unauthenticated());
    const next = (refusal = last) => this.#authenticate(exchange, turn + 1, refusal);
    let success: Awaitable<true | undefined>;
    try {
      success = this.#askVariant('authenticate', method.type, method, exchange);
    } catch (error) {
      return next(asRefusal(error));
    }
    if (!(success instanceof Promise)) return success === true ? undefined : next();
    return success.then(
      (late) => (late === true ? undefined : next()),
      (error) => next(asRefusal(error)),
    );
  }

  #once(exchange: Exchange, parameters: Parameters, state: State): Run {
    let running: Promise<Answer> | undefined;
    return ({ detached = false } = {}) => {
      if (running !== undefined) throw new Error('the rest of the pipeline runs once');
      if (state.settled) throw new Error('the request has ended');
      if (detached) {
        control.detach(exchange);
        state.later = (task) => this.#observe(immediate().then(task));
      }
      running = this.#finish(exchange, parameters, state);
      // A mode may drop it: what went wrong is concluded by then.
      running.catch(() => undefined);
      return running;
    };
  }

  async #finish(exchange: Exchange, parameters: Parameters, state: State): Promise<Answer> {
    this.#running.begin();
    try {
      // Is the answer known already?
      let answer = this.#ask('lookup', parameters, exchange);
      if (answer instanceof Promise) answer = await answer;
      answer ??= await this.#produce(exchange, parameters, state);
      const settled = this.#settle(exchange, state, { kind: 'signed', answer });
      if (settled instanceof Promise) await settled;
      if (this.#hooks.onResponseSent.isUsed())
        state.later(() => state.concluded ?? this.#observe(this.#ask('onResponseSent', 200, exchange)));
      return answer;
    } catch (error) {
      throw await this.#conclude(exchange, state, asRefusal(error));
    } finally {
      this.#running.end();
    }
  }

  async #produce(exchange: Exchange, given: Parameters, state: State): Promise<Answer> {
    // Plugins may change what is asked.
    let parameters = this.#ask('onBeforeApiCall', given, exchange);
    if (parameters instanceof Promise) parameters = await parameters;
    parameters ??= given;
    // Ask the upstream.
    let fetched = this.#ask('callApi', parameters, exchange);
    if (fetched instanceof Promise) fetched = await fetched;
    if (fetched === undefined) throw at('callApi', refusals.internal('nothing calls the API'));
    // Plugins may change what it said; an error status is never signed, whoever set it.
    let response = this.#ask('onAfterApiCall', fetched, parameters, exchange);
    if (response instanceof Promise) response = await response;
    response ??= fetched;
    if (response.status < 200 || response.status > 299)
      throw at('onAfterApiCall', refusals.upstreamStatus(response.status));
    // A mode may have given up without waiting: what was refused is not signed.
    if (state.settled) throw at('sign', refusals.internal('the request has ended'));
    const answer = await this.#sign(exchange, response);
    // Keep it for others.
    const storing = this.#ask('store', answer, exchange);
    if (storing instanceof Promise) await storing;
    return answer;
  }

  async #sign(exchange: Exchange, response: ApiResponse): Promise<Answer> {
    // What is signed, and what is shown?
    let encoded = this.#ask('encode', response, exchange);
    if (encoded instanceof Promise) encoded = await encoded;
    if (encoded === undefined) throw at('encode', refusals.internal('nothing encodes the answer'));
    // Read once: what is shown must be what is signed, whatever a plugin does with its object meanwhile.
    const { field } = encoded;
    let { bytes, value } = encoded;
    // Only bytes that are shown as they are signed may still change.
    if (value === bytes) {
      let encrypted = this.#ask('encrypt', bytes, exchange);
      if (encrypted instanceof Promise) encrypted = await encrypted;
      bytes = encrypted ?? bytes;
      let changed = this.#ask('onBeforeSign', bytes, exchange);
      if (changed instanceof Promise) changed = await changed;
      bytes = changed ?? bytes;
      value = trustedJson(`"${bytes}"`);
    }
    // Vouch for it.
    const endpointId = exchange.endpoint.id;
    const timestamp = Math.floor(this.#runtime.now() / 1000);
    let signed = this.#ask('sign', { endpointId, timestamp, data: bytes }, exchange);
    if (signed instanceof Promise) signed = await signed;
    if (signed === undefined) throw at('sign', refusals.internal('nothing signs the answer'));
    // Have somebody else vouch for the upstream.
    let proof = this.#ask('prove', exchange);
    if (proof instanceof Promise) proof = await proof;
    const { node, signature } = signed;
    const shown = JsonText.is(value) ? value : JsonText.stringify(value);
    return Answer.of({ node, signature, endpointId, timestamp, field, value: shown, proof });
  }

  /** Settles a failure once, before anyone can see it, and has it observed. */
  async #conclude(exchange: Exchange, state: State, refusal: Refusal): Promise<Refusal> {
    if (refusal === state.concluded) return refusal;
    if (state.concluded !== undefined) {
      // A mode answers in its own words; who is told later hears what the client heard.
      state.concluded = refusal;
      if (!exchange.abandoned) this.#runtime.failed(exchange, refusal);
      return refusal;
    }
    const abandoned = exchange.abandoned;
    await this.#settle(exchange, state, abandoned ? { kind: 'abandoned' } : { kind: 'refused', refusal });
    state.concluded = abandoned ? at(refusal.stage ?? 'deliver', refusals.abandoned()) : refusal;
    if (abandoned) return state.concluded;
    this.#runtime.failed(exchange, refusal);
    state.later(() => {
      const last = state.concluded ?? refusal;
      if (last.failure && last.stage !== undefined) this.#observe(this.#ask('onError', last, state.id, exchange));
    });
    return refusal;
  }

  #settle(exchange: Exchange, state: State, outcome: Outcome): Awaitable<void> {
    if (state.settled) return undefined;
    state.settled = true;
    return this.#ask('settle', Object.freeze(outcome), exchange);
  }

  #observe(watching: Awaitable<unknown>): void {
    if (!(watching instanceof Promise)) return;
    this.#running.begin();
    watching.then(this.#running.end, this.#running.end);
  }

  /** Asks the plugins of a stage; `undefined` when none had anything to say. At once, without a promise, if they answer so. */
  #ask<N extends Exclude<StageName, Variants>>(stage: N, ...args: StageArgs<N>): Awaitable<StageOut<N>>;
  #ask(stage: Exclude<StageName, Variants>, ...args: unknown[]): unknown {
    return this.#answer(this.#hooks[stage], stage, args);
  }

  #askVariant<N extends Variants>(stage: N, variant: string, ...args: StageArgs<N>): Awaitable<StageOut<N>>;
  #askVariant(stage: Variants, variant: string, ...args: unknown[]): unknown {
    return this.#answer(this.#hooks[stage].for(variant), stage, args);
  }

  #answer(hook: AnyHook, stage: StageName, args: readonly unknown[]): unknown {
    if (!hook.isUsed()) return undefined;
    const exchange = args[args.length - 1] as Exchange;
    if (exchange.abandoned && !concluding.has(stage)) throw at(stage, refusals.abandoned());
    return this.#observer.stage === undefined
      ? answerOf(hook, stage, args)
      : this.#observed(hook, stage, args, exchange);
  }

  async #observed(hook: AnyHook, stage: StageName, args: readonly unknown[], exchange: Exchange): Promise<unknown> {
    const started = performance.now();
    let outcome: StageEvent['outcome'] = 'refused';
    try {
      const answer = await answerOf(hook, stage, args);
      outcome = answer === undefined ? 'silent' : 'answered';
      return answer;
    } finally {
      this.#observer.stage?.({ exchange, stage, milliseconds: performance.now() - started, outcome });
    }
  }
}

/** What a stage's plugins answer, or a promise of it. @throws Refusal */
function answerOf(hook: AnyHook, stage: StageName, args: readonly unknown[]): unknown {
  const receiver = spare ?? new Receiver();
  spare = undefined;
  hook.callAsync(...args, receiver.take);
  const { answered, error, result } = receiver;
  if (!answered) {
    return new Promise((resolve, reject) => {
      receiver.later = (late, value) => (late ? reject(at(stage, late)) : resolve(value));
    });
  }
  receiver.clear();
  spare = receiver;
  if (error) throw at(stage, error);
  return result;
}

/** Takes what the plugins of a stage answer, which they do once: one that was answered at once can serve again. */
class Receiver {
  answered = false;
  error: unknown;
  result: unknown;
  later: ((error: unknown, result: unknown) => void) | undefined;

  readonly take = (error: unknown, result: unknown): void => {
    const { later } = this;
    if (later === undefined) {
      this.answered = true;
      this.error = error;
      this.result = result;
      return;
    }
    // One that V8 has moved to its old generation would keep alive whatever it points to, long after its own end.
    this.later = undefined;
    later(error, result);
  };

  clear(): void {
    this.answered = false;
    this.error = undefined;
    this.result = undefined;
  }
}

let spare: Receiver | undefined;

type Variants = 'authenticate' | 'deliver';

/** Takes a task that must not delay the reply. */
export type Later = (task: () => void) => void;

/** What is known of one request besides the exchange. */
interface State {
  settled: boolean;
  /** The refusal that it ended with, if it did. */
  concluded?: Refusal;
  later: Later;
  readonly id: string;
}

const none: Headers = Object.freeze({});

/** Stages that run although nobody waits any more. */
const concluding: ReadonlySet<StageName> = new Set(['settle', 'store', 'respond', 'onResponseSent', 'onError']);
