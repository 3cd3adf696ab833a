import { control, type Exchange } from '../kernel/exchange.ts';
import type { Parameters } from '../kernel/values.ts';

/** The options of a {@link ContextKey}. */
export interface ContextKeyOptions {
  /** Whether the first value is final. Use it for values that decide about a request, under a key that other plugins know. */
  readonly once?: boolean;
  /**
   * Whether the request's log line shows the value, in a field named after the key. It must then be no secret. A value that is
   * set on a fork of a request is set on that request, too.
   */
  readonly logged?: boolean;
}

/**
 * A typed key for a value that one plugin leaves on a request for others. Only code that has the key can read or write the value,
 * which is gone with the request.
 */
export class ContextKey<T> {
  readonly name: string;
  readonly #options: ContextKeyOptions;

  constructor(name: string, options: ContextKeyOptions = {}) {
    this.name = name;
    this.#options = options;
  }

  /** Adds a request's logged values to the fields of its log line. Existing fields stay. */
  static addLogged(exchange: Exchange, fields: Record<string, unknown>): void {
    for (const [key, value] of control.valuesOf(exchange) ?? [])
      if (key instanceof ContextKey && key.#options.logged) fields[key.name] ??= value;
  }

  /** Returns the value on a request, if there is one. */
  get(exchange: Exchange): T | undefined {
    // No other plugin writes under this key.
    return control.valuesOf(exchange)?.get(this) as T | undefined;
  }

  /** Sets the value on a request. @throws Error if the key is `once` and has a value. */
  set(exchange: Exchange, value: T): void {
    const { once, logged } = this.#options;
    if (control.valuesOf(exchange)?.has(this) && once)
      throw new Error(`context key "${this.name}" has a value already`);
    control.setValue(exchange, this, value);
    const origin = logged && control.originOf(exchange);
    if (origin) this.set(origin, value);
  }

  /** Returns the value on a request. @throws Error if there is none: a fault in the plugins' order, never the client's. */
  require(exchange: Exchange): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`context key "${this.name}" has no value`);
    return value;
  }
}

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
