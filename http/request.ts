import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import { Exchange } from '../kernel/exchange.ts';
import type { EndpointRequest } from '../kernel/pipeline.ts';
import type { Hex, HttpRequest } from '../kernel/values.ts';
import { readBody, tooLarge } from './body.ts';

/** An HTTP request with its exchange, until its response is out. */
export class IncomingRequest implements EndpointRequest {
  readonly exchange: Exchange;
  readonly endpointId: string;
  readonly httpRequest: HttpRequest;
  readonly #tasks: (() => void)[] = [];
  #body: Promise<Buffer> | undefined;
  #isOut = false;

  /** @param route the pattern of its path. */
  constructor(ctx: Context, route: string, requestId: Hex) {
    const { method = '', headers, socket } = ctx.req;
    const socketAddress = socket.remoteAddress ?? '';
    this.exchange = new Exchange({ requestId, method, route, headers: flatten(headers), socketAddress });
    this.endpointId = ctx.params?.endpointId ?? '';
    this.httpRequest = { request: ctx.req, readBody: (max) => this.#read(ctx, max) };
  }

  /** Reads the body once, although several functions may ask for it. */
  #read(ctx: Context, max: number): Promise<Buffer> {
    const begun = this.#body;
    this.#body ??= readBody(ctx, max);
    return begun?.then((body) => (body.length > max ? Promise.reject(tooLarge()) : body)) ?? this.#body;
  }

  /** Runs a task once the response is out or, where its body streams, once the head is. */
  later(task: () => void): void {
    this.#tasks.push(task);
    if (this.#isOut) this.out();
  }

  /** Runs the tasks for later: the response, or the head of a stream, is out. */
  out(): void {
    this.#isOut = true;
    for (const task of this.#tasks.splice(0)) task();
  }
}

/** Returns headers as texts: in node's `message.headers` only `set-cookie` is a list. */
function flatten(headers: IncomingHttpHeaders): Record<string, string | undefined> {
  const texts = headers as Record<string, string | undefined>;
  const cookies = headers['set-cookie'];
  // No copy is needed, since nothing changes the headers.
  return cookies === undefined ? texts : { ...texts, 'set-cookie': cookies.join(', ') };
}
