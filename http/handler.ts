import Koa from 'koa';
import { control, type Exchange } from '../kernel/exchange.ts';
import type { Observer } from '../kernel/observer.ts';
import type { Pipeline } from '../kernel/pipeline.ts';
import { asRefusal, Refusal, refusals } from '../kernel/refusal.ts';
import type { PluginSet } from '../kernel/registry.ts';
import type { Hex, HttpResponse } from '../kernel/values.ts';
import type { IncomingRequest } from './connections.ts';
import { responseTo } from './response-to.ts';
import { RoutedRequest } from './routed-request.ts';
import { ENDPOINTS, type PathParameters, Routes, type Target } from './routes.ts';
import { send } from './send.ts';
import { isStream, Stream } from './stream.ts';

export interface HandlerOptions {
  readonly plugins: PluginSet;
  readonly observer: Observer;
  readonly pipeline: Pipeline;
  /** Makes the id of a request. */
  newId(): Hex;
  /** Checks that HTTP can carry a response, and throws if it cannot. */
  check(response: HttpResponse): HttpResponse;
  /** Told of what went wrong before, beside and behind the pipeline: at the gate, in a route's handler, in a body that streams. */
  failed(exchange: Exchange, refusal: Refusal): void;
  /** Told of the end of every response, once each. */
  closed(): void;
}

/** The path of an endpoint: nearly every request has one, and the router would find the same. */
const ENDPOINT = /^\/endpoints\/(0x[0-9a-fA-F]{64})$/;

/** Handles HTTP requests from their headers to the last byte of their responses, by a pipeline and the routes of its plugins. */
export class HttpHandler {
  readonly #options: HandlerOptions;
  readonly #routes: Routes;
  /** Those whose body streams. */
  readonly #streaming = new Set<RoutedRequest>();
  #isEnding = false;
  /** Makes the contexts that middleware wants. */
  readonly #app = new Koa();

  /** @throws RegistrationError for a route that no router can serve. */
  constructor(options: HandlerOptions) {
    this.#options = options;
    this.#routes = new Routes(options.plugins.plugins);
  }

  handle(incoming: IncomingRequest): void {
    const { method = '', url = '' } = incoming.request;
    const endpointId = method === 'POST' ? ENDPOINT.exec(url)?.[1] : undefined;
    if (endpointId !== undefined) {
      this.#start(ENDPOINTS, incoming, { endpointId });
      return;
    }
    const { target, params } = this.#routes.find(method, this.#pathOf(incoming));
    this.#start(target, incoming, params);
  }

  /** Ends the bodies that stream, and each one that begins from now on: nobody waits for what may have no end. */
  endStreams(): void {
    this.#isEnding = true;
    for (const { stream } of this.#streaming) stream?.end();
  }

  /** Empty for a request target that cannot be read, such as `http://[/`: no route matches it but one of any path. */
  #pathOf({ request, response }: IncomingRequest): string {
    try {
      return this.#app.createContext(request, response).path;
    } catch {
      return '';
    }
  }

  #start(target: Target, incoming: IncomingRequest, params: PathParameters): void {
    const { observer, newId, closed } = this.#options;
    const { response } = incoming;
    const routed = new RoutedRequest(newId(), target.route, incoming, params, this.#app);
    response.on('close', () => {
      const isOut = response.writableFinished;
      const { exchange, stream } = routed;
      stream?.end();
      this.#streaming.delete(routed);
      // Nobody waits for more of a stream, even where it was ended before its time.
      if (!isOut || stream !== undefined) control.disconnect(exchange);
      // What was sent of a stream was an answer.
      observer.response?.(exchange, isOut || stream !== undefined ? response.statusCode : 499);
      closed();
      routed.close();
    });
    void this.#respond(target, routed);
  }

  async #respond(target: Target, routed: RoutedRequest): Promise<void> {
    const { exchange, incoming } = routed;
    const { response } = incoming;
    let stream: Stream | undefined;
    try {
      const { status, headers, body } = await this.#answer(target, routed);
      if (isStream(body)) stream = new Stream(body, incoming, (error) => this.#streamFailed(exchange, error));
      const common = await this.#options.pipeline.headers(exchange);
      if (exchange.abandoned || response.destroyed) return;
      response.setHeader('X-Request-Id', exchange.requestId);
      send(incoming, { status, headers: [common, headers], body });
      if (stream !== undefined) await this.#pour(stream, routed);
    } catch {
      // What cannot be sent must not be waited for.
      response.destroy();
    } finally {
      stream?.end();
    }
  }

  #pour(stream: Stream, routed: RoutedRequest): Promise<void> {
    routed.begin(stream);
    this.#streaming.add(routed);
    if (this.#isEnding) stream.end();
    return stream.pour();
  }

  /** What has a stage came from the pipeline, which has told of it. */
  #streamFailed(exchange: Exchange, error: unknown): void {
    const refusal = asRefusal(error);
    const stage = exchange.resolved === undefined ? 'route' : 'deliver';
    if (refusal.stage === undefined) this.#report(exchange, asRefusal(refusal, stage));
  }

  async #answer({ admit, maxBody, by }: Target, routed: RoutedRequest): Promise<HttpResponse> {
    try {
      if (admit) await this.#admit(routed);
      if (by instanceof Refusal) return this.#responseTo(by);
      return await (by === 'endpoint' ? this.#options.pipeline.serve(routed) : this.#route(by, maxBody, routed));
    } catch (error) {
      return this.#responseTo(error);
    }
  }

  async #route(key: string, maxBody: number, routed: RoutedRequest): Promise<HttpResponse> {
    const { exchange, params } = routed;
    const body = maxBody > 0 ? await routed.httpRequest.readBody(maxBody) : new Uint8Array();
    const { url = '' } = routed.incoming.request;
    const query = new URLSearchParams(url.replace(/^[^?]*/, ''));
    try {
      return await this.#options.pipeline.route(key, { params, query, body }, exchange);
    } catch (error) {
      throw this.#report(exchange, error);
    }
  }

  /** @throws Refusal */
  async #admit({ exchange, incoming }: RoutedRequest): Promise<void> {
    try {
      // For observers of errors it is none, like the rate limit.
      if (incoming.overloaded)
        throw new Refusal(503, 'Server busy', { headers: { 'Retry-After': '1' }, failure: false });
      await this.#options.pipeline.admit(exchange);
    } catch (error) {
      throw this.#report(exchange, error);
    }
  }

  #report(exchange: Exchange, error: unknown): Refusal {
    const refusal = asRefusal(error);
    if (refusal.failure) this.#options.failed(exchange, refusal);
    return refusal;
  }

  #responseTo(error: unknown): HttpResponse {
    try {
      return this.#options.check(responseTo(error));
    } catch {
      return this.#responseTo(refusals.internal('a refusal that HTTP cannot carry'));
    }
  }
}
