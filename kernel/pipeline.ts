import { setImmediate as immediate } from 'node:timers/promises';
import { onAbort } from './charge.ts';
import { control, type Exchange } from './exchange.ts';
import { asRefusal, type Refusal, refusals, refuse } from './refusal.ts';
import type { PluginSet } from './registry.ts';
import type { StageName } from './stages.ts';
import {
  type ApiResponse,
  type AttachedStatement,
  type AuthMethod,
  type Awaitable,
  type Hex,
  type HttpRequest,
  type HttpResponse,
  isStream,
  type Json,
  type Question,
  type RequestOutcome,
  type Run,
  type SignedParts,
  type SignedResponse,
} from './values.ts';

/** What the pipeline needs beside plugins. */
export interface Runtime {
  /** Epoch milliseconds. */
  now(): number;
  /** Makes the answer that clients get, and vouches for it. @param question the one that the answer is for. */
  makeAnswer(parts: SignedParts, question: Question): SignedResponse;
  /** Called with each refusal that a client may see or an auth method hides; its `reason` says what really happened. */
  failed(exchange: Exchange, refusal: Refusal): void;
}

/** A request to an endpoint. */
export interface EndpointRequest {
  readonly exchange: Exchange;
  /** The endpoint's id as the client sent it. */
  readonly endpointId: string;
  /** The mode to answer in, in place of the endpoint's. */
  readonly mode?: string | undefined;
  /** The HTTP request; its body is not read for an unknown endpoint. Absent if the exchange has its parameters already. */
  readonly httpRequest?: HttpRequest | undefined;
  /** Resolves once the response is out or, if its body streams, its head. */
  readonly responded: Promise<unknown>;
}

/** Runs a request to an endpoint through the stages, in the order of their table, up to its response. @throws Refusal */
export function serve(plugins: PluginSet, runtime: Runtime, request: EndpointRequest): Promise<HttpResponse> {
  return new RequestLifecycle(plugins, runtime, request).serve();
}

/** The reason of a refusal for a request whose outcome is known already. */
const ENDED = 'the request has ended';

/** One request on its way through the stages. */
class RequestLifecycle {
  readonly #plugins: PluginSet;
  readonly #runtime: Runtime;
  readonly #exchange: Exchange;
  readonly #request: EndpointRequest;
  /** Whether the mode has called `run`. */
  #hasRun = false;
  /** The refusal that the request ended with, if any. */
  #refusal: Refusal | undefined;

  constructor(plugins: PluginSet, runtime: Runtime, request: EndpointRequest) {
    this.#plugins = plugins;
    this.#runtime = runtime;
    this.#request = request;
    this.#exchange = request.exchange;
  }

  /** @throws Refusal */
  async serve(): Promise<HttpResponse> {
    try {
      const httpResponse = await this.#untilPresented();
      // A mode may call `run` as late as while its body streams. When the response closes, the client counts as gone.
      if (isStream(httpResponse.body))
        onAbort(this.#exchange.clientSignal, () => void this.#plugins.running.track(() => this.#refuseUnanswered()));
      else if (!this.#hasRun) await this.#refuseUnanswered();
      return httpResponse;
    } catch (error) {
      throw await this.#conclude(asRefusal(error, 'present'));
    }
  }

  async #untilPresented(): Promise<HttpResponse> {
    const { hooks } = this.#plugins;
    const exchange = this.#exchange;
    const { endpointId, httpRequest } = this.#request;
    const endpoint = await hooks.resolve.ask([endpointId, exchange]);
    control.resolveTo(exchange, endpoint ?? refuse('resolve', refusals.endpointNotFound()));
    const sent = httpRequest && (await hooks.parseBody.ask([httpRequest, exchange]));
    if (sent !== undefined) control.receive(exchange, sent);
    const rejection = await hooks.onHttpRequest.ask([exchange]);
    if (rejection !== undefined) refuse('onHttpRequest', rejection);
    await this.#authenticate(exchange.endpoint.auth);
    // From here on the question alone says what is asked.
    const parameters = await hooks.validate.ask([exchange.parameters, exchange]);
    const variation = await hooks.vary.ask(['', exchange]);
    const question =
      (await hooks.prepare.ask([parameters, variation, exchange])) ??
      refuse('prepare', refusals.internal('nothing prepares the question'));
    // The mode decides when the rest runs and how the answer travels.
    const mode = this.#request.mode ?? exchange.endpoint.mode;
    const httpResponse = await hooks.present.ask([this.#runOf(question), exchange], mode);
    return httpResponse ?? refuse('present', refusals.internal(`mode "${mode}" has no provider`));
  }

  /** Tries auth methods until one succeeds. When all fail, the client gets the last one's refusal. @throws Refusal */
  async #authenticate(methods: readonly AuthMethod[]): Promise<void> {
    let last: Refusal | undefined;
    // Operators must hear of a fault that a later method hides from the client.
    const tellHidden = () => {
      if (last?.fault) this.#runtime.failed(this.#exchange, last);
    };
    for (const method of methods) {
      try {
        if (await this.#plugins.hooks.authenticate.ask([method, this.#exchange], method.type)) return tellHidden();
      } catch (error) {
        tellHidden();
        last = asRefusal(error);
      }
    }
    refuse('authenticate', last ?? refusals.unauthenticated());
  }

  #runOf(question: Question): Run {
    return ({ detached = false } = {}) => {
      if (this.#hasRun) throw new Error('the rest of the pipeline runs once');
      if (this.#exchange.outcome !== undefined) throw new Error(ENDED);
      this.#hasRun = true;
      if (detached) control.detach(this.#exchange);
      // A mode may ignore the promise. Its failure was concluded already, and is no unhandled rejection once it is tracked.
      return this.#plugins.running.track(() => this.#answer(question));
    };
  }

  async #answer(question: Question): Promise<SignedResponse> {
    const { hooks } = this.#plugins;
    const exchange = this.#exchange;
    try {
      const answer = await hooks.answer.askAround(question, exchange, this.#produce);
      // No client sees the answer before it is approved. A request that was refused meanwhile must not be paid for, nor one
      // whose client has left.
      requireNotEnded(exchange, 'approve');
      if (exchange.abandoned) refuse('approve', refusals.abandoned());
      await hooks.approve.ask([answer, exchange]);
      requireNotEnded(exchange, 'approve');
      // The outcome is certain, and the answer not yet sent.
      await this.#tellOutcome({ kind: 'signed', response: answer });
      // A mode may still have refused the client.
      const tell = () => this.#refusal === undefined && hooks.onResponseSent.ask([200, answer, exchange]);
      if (hooks.onResponseSent.isTapped()) this.#afterResponse(tell);
      return answer;
    } catch (error) {
      throw await this.#conclude(asRefusal(error, 'answer'), true);
    }
  }

  /**
   * Makes a signed answer: calls the upstream, encodes its response and signs the result.
   * @param exchange a fork of the request's exchange if a plugin shares the work.
   */
  readonly #produce = async (question: Question, exchange: Exchange): Promise<SignedResponse> => {
    const { hooks } = this.#plugins;
    const parameters = await hooks.onBeforeApiCall.ask([question.parameters, exchange]);
    const asked = parameters === question.parameters ? question : question.with(parameters);
    // The plugin that calls the API is innermost, and asks for nothing inside it.
    const fetched = await hooks.callApi.askAround(asked.request, exchange, () =>
      refuse('callApi', refusals.internal('nothing calls the API')),
    );
    const apiResponse = await hooks.onAfterApiCall.ask([fetched, asked.parameters, exchange]);
    const { status } = apiResponse;
    // An error status is never signed, even if a plugin has set it.
    if (status < 200 || status > 299) refuse('onAfterApiCall', refusals.upstreamStatus(status));
    const parts = await this.#sign(apiResponse, asked, exchange);
    parts.proof = fetched.request && (await hooks.attest.ask([fetched.request, exchange]));
    return this.#runtime.makeAnswer(parts, asked);
  };

  async #sign(apiResponse: ApiResponse, question: Question, exchange: Exchange): Promise<SignedParts> {
    const { hooks } = this.#plugins;
    requireNotEnded(exchange, 'sign');
    const encoded = await hooks.encode.ask([apiResponse, question, exchange]);
    const { bytes, field, value } = encoded ?? refuse('encode', refusals.internal('nothing encodes the answer'));
    // Plugins may change the bytes only if the answer shows the bytes themselves: shown and signed value must agree.
    const showsBytes = value === bytes;
    const encrypted = showsBytes ? await hooks.encrypt.ask([bytes, exchange]) : bytes;
    const data = showsBytes ? await hooks.onBeforeSign.ask([encrypted, exchange]) : bytes;
    requireNotEnded(exchange, 'sign');
    const endpointId = exchange.endpoint.id;
    const timestamp = Math.floor(this.#runtime.now() / 1000);
    const unsigned = Object.freeze({ endpointId, timestamp, data, isHash: !showsBytes, question });
    const statements = await hooks.statements.ask([nothing, unsigned, exchange]);
    const signRequest = statements.length > 0 ? Object.freeze({ ...unsigned, statements }) : unsigned;
    const signed =
      (await hooks.sign.ask([signRequest, exchange])) ?? refuse('sign', refusals.internal('nothing signs the answer'));
    const { node, signature, digest } = signed;
    const members = statements.length > 0 ? membersOf(statements, signed.statements) : undefined;
    const extra = members === undefined ? signed.extra : { ...signed.extra, ...members };
    const shown = showsBytes ? data : value;
    return { node, signature, digest, extra, endpointId, timestamp, data, field, value: shown, proof: undefined };
  }

  /** Concludes the request as refused if its mode ended without calling `run`. */
  async #refuseUnanswered(): Promise<void> {
    if (!this.#hasRun) await this.#tellOutcome({ kind: 'refused', refusal: refusals.unanswered() });
  }

  /**
   * Concludes a failure once, before anyone can see it, and reports it. Afterwards a mode may still answer in its own words, or
   * pass on what `run` has thrown: that is the same object, since it was checked.
   * @param isInner whether `run` failed, not the mode: a refusal of the mode from before then stays.
   * @returns the refusal for the client.
   */
  async #conclude(thrown: Refusal, isInner = false): Promise<Refusal> {
    if (thrown === this.#refusal) return thrown;
    const { abandoned } = this.#exchange;
    const isFirst = this.#refusal === undefined;
    const refusal = abandoned ? asRefusal(refusals.abandoned(), thrown.stage) : thrown;
    // Set before the first `await`: the mode may fail meanwhile, and the client gets the last failure.
    if (isFirst || !isInner) this.#refusal = refusal;
    if (isFirst) await this.#tellOutcome(abandoned ? { kind: 'abandoned' } : { kind: 'refused', refusal });
    if (abandoned || refusal.reason === ENDED) return refusal;
    this.#runtime.failed(this.#exchange, refusal);
    // `onError` runs later, and reports the refusal that the client got.
    if (isFirst)
      this.#afterResponse(() =>
        this.#plugins.hooks.onError.ask([this.#refusal ?? refusal, this.#request.endpointId, this.#exchange]),
      );
    return refusal;
  }

  #tellOutcome(outcome: RequestOutcome): Awaitable<void> {
    if (!control.setOutcome(this.#exchange, outcome)) return undefined;
    return this.#plugins.hooks.concluded.ask([outcome, this.#exchange]);
  }

  /** Runs a task that must not delay the response. A stop waits for it. */
  #afterResponse(task: () => Awaitable<unknown>): void {
    const responded = this.#exchange.detached ? immediate() : this.#request.responded;
    void this.#plugins.running.track(() => responded.then(task));
  }
}

const nothing: readonly AttachedStatement[] = Object.freeze([]);

const missing = () => refuse('sign', refusals.internal('a statement has no signature'));

/** Returns the members of an answer that show its statements, each with its signature. */
function membersOf(statements: readonly AttachedStatement[], signatures: readonly Hex[] = []): Record<string, Json> {
  return Object.fromEntries(
    statements.map(({ name, shown }, index) => [name, { ...shown, signature: signatures[index] ?? missing() }]),
  );
}

/** Refuses if a mode gave up without waiting: the answer is not paid for, nor signed unless others share it. @throws Refusal */
function requireNotEnded(exchange: Exchange, stage: StageName): void {
  if (exchange.outcome !== undefined) refuse(stage, refusals.internal(ENDED));
}
