import { ContextKey, type Exchange, type Parameters } from './kernel.ts';

/** The client's address, from a trusted proxy; left at `admit`. */
export const clientAddress = new ContextKey<string>('clientAddress', { once: true });

/** The client's IP address. */
export function clientIp(exchange: Exchange): string {
  return clientAddress.get(exchange) ?? exchange.socketAddress;
}

/** The operator's name for the client; left at `authenticate`. It stands in the log, so it must be no secret. */
export const clientName = new ContextKey<string>('clientName');

/** The request for which a plugin asks with this one. */
export const askedFor = new ContextKey<Exchange>('askedFor', { once: true });

/** The body's bytes as the client sent them; left at `parseBody`. */
export const rawBody = new ContextKey<Uint8Array>('rawBody', { once: true });

/**
 * The parameters with a number that a double would round; a marked text stands for each such number. Left at `parseBody`, where there
 * are such parameters.
 */
export const writtenParameters = new ContextKey<Parameters>('writtenParameters', { once: true });

/** Headers of the answer itself, for modes that answer in a response. */
export const answerHeaders = new ContextKey<Readonly<Record<string, string>>>('answerHeaders');

/** Adds to `answerHeaders`, before the client has its answer. */
export function addAnswerHeaders(exchange: Exchange, headers: Readonly<Record<string, string>>): void {
  const before = answerHeaders.get(exchange);
  // A frozen object that goes out as it is need not be looked at again.
  const isWhole = before === undefined && Object.isFrozen(headers);
  answerHeaders.set(exchange, isWhole ? headers : { ...before, ...headers });
}

/** The unknown endpoint ID that a client asked for; left at `resolve`. */
export const unknownEndpointId = new ContextKey<string>('unknownEndpointId', { once: true });

/** Scheme, host and path of an upstream's redirect, for the operator; clients may have chosen parts of it. */
export const redirectTarget = new ContextKey<string>('redirectTarget');
