import type { Exchange } from '../kernel/exchange.ts';
import type { Parameters } from '../kernel/values.ts';
import { ContextKey } from './context-key.ts';

/** The client's address as a trusted proxy reports it; set at `admit`. */
export const clientAddress = new ContextKey<string>('clientAddress', { once: true });

/** Returns the client's IP address. */
export function clientIp(exchange: Exchange): string {
  return clientAddress.get(exchange) ?? exchange.socketAddress;
}

/** The operator's name for the client; set at `authenticate`. The log shows it, so it must be no secret. */
export const clientName = new ContextKey<string>('clientName');

/** The client's request on whose behalf a plugin made this one. */
export const askedFor = new ContextKey<Exchange>('askedFor', { once: true });

/** The body's bytes as the client sent them; set at `parseBody`. */
export const rawBody = new ContextKey<Uint8Array>('rawBody', { once: true });

/**
 * Only the parameters that hold a number which a double would round, with a marked text in place of each such number. Set at
 * `parseBody`, if there are any.
 */
export const writtenParameters = new ContextKey<Parameters>('writtenParameters', { once: true });

/** Headers that belong to the answer, for modes that send it in the response. */
export const answerHeaders = new ContextKey<Readonly<Record<string, string>>>('answerHeaders');

/** Adds headers to `answerHeaders`, before the client has its answer. */
export function addAnswerHeaders(exchange: Exchange, headers: Readonly<Record<string, string>>): void {
  const before = answerHeaders.get(exchange);
  // A single frozen object is kept as it is: no copy is needed.
  const isWhole = before === undefined && Object.isFrozen(headers);
  answerHeaders.set(exchange, isWhole ? headers : { ...before, ...headers });
}

/** The unknown endpoint ID that a client asked for; set at `resolve`. */
export const unknownEndpointId = new ContextKey<string>('unknownEndpointId', { once: true });

/** Scheme, host and path of an upstream's redirect, for the operator. Clients may have chosen parts of them. */
export const redirectTarget = new ContextKey<string>('redirectTarget');
