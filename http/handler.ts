import type { PluginSet } from '../kernel/registry.ts';
import type { IncomingRequest } from './connections.ts';
import { contextOf } from './contexts.ts';
import { type RequestOptions, RoutedRequest } from './request.ts';
import { ENDPOINTS, Routes } from './routes.ts';

export interface HandlerOptions extends RequestOptions {
  readonly plugins: PluginSet;
}

/** The path of an endpoint: nearly every request has one, and the router would find the same. */
const ENDPOINT = /^\/endpoints\/0x[0-9a-fA-F]{64}$/;
const FOLDER = '/endpoints/';

/** Handles HTTP requests from their headers to the last byte of their responses, by a pipeline and the routes of its plugins. */
export class HttpHandler {
  readonly #options: HandlerOptions;
  readonly #routes: Routes;
  /** Requests whose response streams. */
  readonly #streaming = new Set<RoutedRequest>();
  #isEnding = false;

  /** @throws RegistrationError for a route that no router can serve. */
  constructor(options: HandlerOptions) {
    this.#options = options;
    this.#routes = new Routes(options.plugins.plugins);
  }

  handle(incoming: IncomingRequest): void {
    const { method = '', url = '' } = incoming.request;
    const found =
      method === 'POST' && ENDPOINT.test(url)
        ? { target: ENDPOINTS, params: { endpointId: url.slice(FOLDER.length) } }
        : this.#routes.find(method, pathOf(incoming));
    const routed = new RoutedRequest(incoming, found, this.#options);
    incoming.response.on('close', () => {
      this.#streaming.delete(routed);
      routed.close();
    });
    void routed.respond(() => {
      this.#streaming.add(routed);
      if (this.#isEnding) routed.endStream?.();
    });
  }

  /** Ends the bodies that stream, and each one that begins from now on: nobody waits for what may have no end. */
  endStreams(): void {
    this.#isEnding = true;
    for (const { endStream } of this.#streaming) endStream?.();
  }
}

/** A request target that is a path, with or without a query, and nothing that could be read in two ways. */
const PATH = /^(\/[^?#\s\ufeff]*)(?:\?[^#\s\ufeff]*)?$/;

/** The path of a request; empty where its target cannot be read, such as `http://[/`. Only a route of any path matches that. */
function pathOf({ request, response }: IncomingRequest): string {
  try {
    return PATH.exec(request.url ?? '')?.[1] ?? contextOf(request, response).path;
  } catch {
    return '';
  }
}
