import {
  type BucketLimit,
  type CompareAndSetOptions,
  type Conflict,
  type StateArea,
  StateUnavailable,
  type Taken,
} from '../../plugins-sdk/state.ts';
import type { Connection } from './connection.ts';
import { optional, swap, take } from './scripts.ts';

/** One area of a server. Every call is one command, and so one atomic step. */
export class RedisArea implements StateArea {
  readonly #connection: Connection;
  readonly #prefix: string;

  constructor(connection: Connection, prefix: string) {
    this.#connection = connection;
    this.#prefix = prefix;
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.#connection.get(`${this.#prefix}v:${key}`)) ?? undefined;
  }

  async compareAndSet(
    key: string,
    expected: string | undefined,
    next: string | undefined,
    { ttl = Number.POSITIVE_INFINITY, keepLonger = false }: CompareAndSetOptions = {},
  ): Promise<Conflict | undefined> {
    const time = Number.isFinite(ttl) ? `${Math.max(Math.ceil(ttl), 1)}` : '';
    const words = [...optional(expected), ...optional(next), time, keepLonger ? '1' : '0'];
    const standing = await this.#connection.run(swap, `${this.#prefix}v:${key}`, words);
    if (standing === null) return undefined;
    const [value]: unknown[] = Array.isArray(standing) ? standing : unexpected();
    return typeof value === 'string' ? { value } : {};
  }

  async takeTokens(key: string, { max, window }: BucketLimit, n = 1, debt = 0): Promise<Taken> {
    const words = [max, window, n, debt].map(String);
    const taken = await this.#connection.run(take, `${this.#prefix}b:${key}`, words);
    const [granted = 0, retryAfter = 0, left = 0] =
      typeof taken === 'string' ? taken.split(' ').map(Number) : unexpected();
    return { granted, retryAfter, left };
  }
}

function unexpected(): never {
  throw new StateUnavailable('redis answered a script with something else than the script returns');
}
