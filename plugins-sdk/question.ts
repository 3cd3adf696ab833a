import type { Static, TSchema } from 'typebox';
import { Check } from 'typebox/value';
import type { AuthMethod, Endpoint, OutgoingRequest, Parameters, Question } from '../kernel/values.ts';
import type { Hex } from '../lib/eth/hex.ts';

/** The parts that a question is made from. */
export interface QuestionParts extends Pick<Question, 'parameters' | 'reserved' | 'request'> {
  /** The hash of the request, which the answer's receipt signs; only on endpoints with receipts. */
  readonly requestHash: Hex | undefined;
  /** Makes the key; called once, on first use. */
  key(): string;
  /** Returns the outgoing request for other parameters. @throws Refusal 400 */
  requestFor(parameters: Parameters): OutgoingRequest;
}

/** The only kind of question that the service accepts: immutable, with its key and hash. */
export class AskedQuestion implements Question {
  readonly parameters: Parameters;
  readonly reserved: Parameters;
  readonly request: OutgoingRequest;
  readonly requestHash: Hex | undefined;
  readonly #parts: QuestionParts;
  readonly #first: AskedQuestion;
  #key: string | undefined;

  constructor(parts: QuestionParts, first?: AskedQuestion) {
    this.parameters = parts.parameters;
    this.reserved = parts.reserved;
    this.request = parts.request;
    this.requestHash = parts.requestHash;
    this.#parts = parts;
    this.#first = first ?? this;
    Object.freeze(this);
  }

  static is(value: unknown): value is AskedQuestion {
    return typeof value === 'object' && value !== null && #parts in value;
  }

  /** Returns whether both stem from one question of a client. */
  static isSame(one: AskedQuestion, other: AskedQuestion): boolean {
    return one.#first === other.#first;
  }

  get key(): string {
    const first = this.#first;
    first.#key ??= first.#parts.key();
    return first.#key;
  }

  with(parameters: Parameters): Question {
    const request = this.#parts.requestFor(parameters);
    return new AskedQuestion({ ...this.#parts, parameters, request }, this.#first);
  }
}

/**
 * Prepares a value for each endpoint once, at the start.
 * @returns a look-up by endpoint. It throws for an object that is not one of `endpoints`.
 */
export function perEndpoint<T>(
  endpoints: readonly Endpoint[],
  prepare: (endpoint: Endpoint) => T,
): (endpoint: Endpoint) => T {
  return lookup(new Map(endpoints.map((endpoint) => [endpoint, prepare(endpoint)])));
}

/** Prepares a value for each auth object of one type, as `perEndpoint` does for endpoints. */
export function perMethod<S extends TSchema, T>(
  endpoints: readonly Endpoint[],
  type: string,
  schema: S,
  prepare: (method: Static<S>) => T,
): (method: AuthMethod) => T {
  const methods = new Set(endpoints.flatMap((endpoint) => endpoint.auth.filter((method) => method.type === type)));
  const prepared = [...methods].map((method): [AuthMethod, T] => {
    const { type: _, ...rest } = method;
    if (!Check(schema, rest)) throw new Error(`an auth object of type ${type} was not validated`);
    return [method, prepare(rest as Static<S>)];
  });
  return lookup(new Map(prepared));
}

function lookup<K, T>(prepared: ReadonlyMap<K, T>): (key: K) => T {
  return (key) => {
    const found = prepared.get(key);
    if (found !== undefined || prepared.has(key)) return found as T;
    throw new Error(
      'asked for something that was not prepared at start-up: only the very objects of services.endpoints are, which a test of a plugin gives to testPlugin',
    );
  };
}
