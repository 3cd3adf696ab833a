import { setImmediate as immediate } from 'node:timers/promises';
import type { Context } from 'koa';
import { Answer, type Encoded } from './answer.ts';
import type { Exchange, Hex, Parameters } from './exchange.ts';
import type { Observer, StageEvent } from './observer.ts';
import { asRefusal, at, type Refusal, refusals } from './refusal.ts';
import type { Sealed } from './registry.ts';
import {
  type AnyHook,
  type ApiResponse,
  type Awaitable,
  type Hooks,
  hasVariants,
  hookAt,
  type Outcome,
  type Reply,
  type Run,
  type StageArgs,
  type StageName,
  type StageOut,
} from './stages.ts';
import { Tally } from './tally.ts';

export interface Runtime {
  /** Epoch milliseconds. */
  now(): number;
  /** Told of every refusal and failure with what really happened. */
  failed(exchange: Exchange, refusal: Refusal): void;
}

/** Runs requests through the stages, in the order of the stage table. */
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

  /** The headers of any response. */
  async headers(exchange: Exchange): Promise<Readonly<Record<string, string>>> {
    return (await this.#ask('respond', {}, exchange)) ?? {};
  }

  /**
   * One request, from its endpoint id to the reply.
   * @param ctx the HTTP request; its body is not read for an unknown endpoint.
   * @param later takes what must wait until the reply is on its way.
   * @throws Refusal
   */
  async serve(exchange: Exchange, id: string, ctx: Context, later: Later): Promise<Reply> {
    const state: State = { settled: false, later, id };
    try {
      // Which endpoint is meant?
      const endpoint = await this.#ask('resolve', id, exchange);
      if (endpoint === undefined) throw at('resolve', refusals.endpointNotFound());
      exchange.resolveTo(endpoint);
      // What does the client say?
      exchange.parameters = (await this.#ask('read', ctx, exchange)) ?? exchange.parameters;
      // May a plugin reject it?
      const rejection = await this.#ask('onHttpRequest', exchange);
      if (rejection !== undefined) throw at('onHttpRequest', rejection);
      // Who is asking? Any one method is enough.
      await this.#authenticate(exchange);
      // Are the parameters complete and sound?
      const parameters = (await this.#ask('validate', exchange.parameters, exchange)) ?? {};
      // The mode decides when the rest runs and how the answer travels.
      const reply = await this.#ask('deliver', endpoint.mode, this.#once(exchange, parameters, state), exchange);
      if (reply === undefined) throw at('deliver', refusals.internal(`mode "${endpoint.mode}" has no provider`));
      return reply;
    } catch (error) {
      throw await this.#conclude(exchange, state, asRefusal(error));
    }
  }

  /** Any success authenticates; when all fail, the last method's refusal is the answer. */
  async #authenticate(exchange: Exchange): Promise<void> {
    let last: Refusal | undefined;
    for (const method of exchange.endpoint.auth) {
      try {
        if ((await this.#ask('authenticate', method.type, method, exchange)) === true) return;
      } catch (error) {
        last = asRefusal(error);
      }
    }
    throw at('authenticate', last ?? refusals.unauthenticated());
  }

  #once(exchange: Exchange, parameters: Parameters, state: State): Run {
    let running: Promise<Answer> | undefined;
    return ({ detached = false } = {}) => {
      if (running !== undefined) throw new Error('the rest of the pipeline runs once');
      if (state.settled) throw new Error('the request has ended');
      if (detached) {
        exchange.detach();
        state.later = (task) => this.#observe(immediate().then(task));
      }
      running = this.#track(this.#finish(exchange, parameters, state));
      return running;
    };
  }

  async #finish(exchange: Exchange, parameters: Parameters, state: State): Promise<Answer> {
    try {
      // Is the answer known already?
      const answer =
        (await this.#ask('lookup', parameters, exchange)) ?? (await this.#produce(exchange, parameters, state));
      await this.#settle(exchange, state, { kind: 'signed', answer });
      state.later(() => state.concluded ?? this.#observe(this.#ask('onResponseSent', 200, exchange)));
      return answer;
    } catch (error) {
      throw await this.#conclude(exchange, state, asRefusal(error));
    }
  }

  async #produce(exchange: Exchange, given: Parameters, state: State): Promise<Answer> {
    // Plugins may change what is asked.
    const parameters = (await this.#ask('onBeforeApiCall', given, exchange)) ?? given;
    // Ask the upstream.
    const fetched = await this.#ask('callApi', parameters, exchange);
    if (fetched === undefined) throw at('callApi', refusals.internal('nothing calls the API'));
    // Plugins may change what it said; an error status is never signed, whoever set it.
    const response = (await this.#ask('onAfterApiCall', fetched, parameters, exchange)) ?? fetched;
    if (response.status < 200 || response.status > 299)
      throw at('onAfterApiCall', refusals.upstreamStatus(response.status));
    // A mode may have given up without waiting: what was refused is not signed.
    if (state.settled) throw at('sign', refusals.internal('the request has ended'));
    const answer = await this.#sign(exchange, response);
    // Keep it for others.
    await this.#ask('store', answer, exchange);
    return answer;
  }

  async #sign(exchange: Exchange, response: ApiResponse): Promise<Answer> {
    // What is signed, and what is shown?
    const encoded = await this.#ask('encode', response, exchange);
    if (encoded === undefined) throw at('encode', refusals.internal('nothing encodes the answer'));
    const final = await this.#transform(exchange, encoded);
    // Vouch for it.
    const endpointId = exchange.endpoint.id;
    const timestamp = Math.floor(this.#runtime.now() / 1000);
    const signed = await this.#ask('sign', { endpointId, timestamp, data: final.bytes }, exchange);
    if (signed === undefined) throw at('sign', refusals.internal('nothing signs the answer'));
    // Have somebody else vouch for the upstream.
    const proof = await this.#ask('prove', exchange);
    const { node, signature } = signed;
    return new Answer({ node, signature, endpointId, timestamp, encoded: final, proof });
  }

  /** Only bytes that are shown as they are signed may still change. */
  async #transform(exchange: Exchange, encoded: Encoded): Promise<Encoded> {
    if (encoded.value !== encoded.bytes) return encoded;
    const encrypted = (await this.#ask('encrypt', encoded.bytes, exchange)) ?? encoded.bytes;
    const bytes: Hex = (await this.#ask('onBeforeSign', encrypted, exchange)) ?? encrypted;
    return { bytes, field: encoded.field, value: bytes };
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

  async #settle(exchange: Exchange, state: State, outcome: Outcome): Promise<void> {
    if (state.settled) return;
    state.settled = true;
    await this.#ask('settle', outcome, exchange);
  }

  #observe(watching: Awaitable<unknown>): void {
    if (watching instanceof Promise) void this.#track(watching).catch(() => undefined);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.begin();
    work.then(this.#running.end, this.#running.end);
    return work;
  }

  /** Asks the plugins of a stage; `undefined` when none had anything to say. At once, without a promise, if they answer so. */
  #ask<N extends Variants>(stage: N, variant: string, ...args: StageArgs<N>): Awaitable<StageOut<N>>;
  #ask<N extends Exclude<StageName, Variants>>(stage: N, ...args: StageArgs<N>): Awaitable<StageOut<N>>;
  #ask(stage: StageName, ...given: unknown[]): unknown {
    const varied = hasVariants(stage);
    const hook = hookAt(this.#hooks, stage, varied ? String(given[0]) : undefined);
    if (!hook.isUsed()) return undefined;
    const args = varied ? given.slice(1) : given;
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
  let answer: { readonly error: unknown; readonly result: unknown } | undefined;
  let later: ((error: unknown, result: unknown) => void) | undefined;
  hook.callAsync(...args, (error: unknown, result: unknown) => {
    if (later !== undefined) later(error, result);
    else answer = { error, result };
  });
  if (answer !== undefined) {
    if (answer.error) throw at(stage, asRefusal(answer.error));
    return answer.result;
  }
  return new Promise((resolve, reject) => {
    later = (error, result) => (error ? reject(at(stage, asRefusal(error))) : resolve(result));
  });
}

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

/** Stages that run although nobody waits any more. */
const concluding: ReadonlySet<StageName> = new Set(['settle', 'store', 'respond', 'onResponseSent', 'onError']);
