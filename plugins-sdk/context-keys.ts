import { ContextKey, type Exchange } from './kernel.ts';

/** The client's address where a plugin knows better than the socket (a trusted proxy in front); left at `admit`. */
export const clientAddress = new ContextKey<string>('clientAddress', { once: true });

/** The client's IP address. */
export function clientIp(exchange: Exchange): string {
  return clientAddress.get(exchange) ?? exchange.socketAddress;
}

/**
 * Who is asking, by the operator's own name for that client; left at `authenticate` by the plugin that let it in. It stands in the log,
 * so it must be no secret.
 */
export const clientName = new ContextKey<string>('clientName');

/** The request on whose behalf a plugin asks with this one. */
export const askedFor = new ContextKey<Exchange>('askedFor', { once: true });

/** The bytes of the body as the client sent them, for those who check a signature over them; left at `parseBody`. */
export const rawBody = new ContextKey<Uint8Array>('rawBody', { once: true });

/**
 * The names of parameters with a number in them that a double does not hold exactly, so that their values are rounded. Left
 * at `parseBody`, where there are such parameters.
 */
export const inexactParameters = new ContextKey<ReadonlySet<string>>('inexactParameters', { once: true });

/** Headers that go out with the answer itself, for modes that give the answer in a response. */
export const answerHeaders = new ContextKey<Readonly<Record<string, string>>>('answerHeaders');

/** Adds to {@link answerHeaders}, at any stage before the answer is there for its client. */
export function addAnswerHeaders(exchange: Exchange, headers: Readonly<Record<string, string>>): void {
  const before = answerHeaders.get(exchange);
  // A frozen object that goes out as it is need not be looked at again.
  const isWhole = before === undefined && Object.isFrozen(headers);
  answerHeaders.set(exchange, isWhole ? headers : { ...before, ...headers });
}

/** The ID that a client asked for and no endpoint has; left at `resolve`, for the log. */
export const unknownEndpointId = new ContextKey<string>('unknownEndpointId', { once: true });

/** Scheme, host and path that an upstream redirects to; for the operator who tries an endpoint, since clients may have chosen parts of it. */
export const redirectTarget = new ContextKey<string>('redirectTarget');
