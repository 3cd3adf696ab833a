import type { Log } from '../../plugins-sdk/index.ts';
import { StateUnavailable, StateUnreadable } from '../../plugins-sdk/state.ts';
import { type Client, createClient } from './client.ts';
import { type Examination, examine } from './examine.ts';
import { hint, isReply, unavailable } from './reason.ts';
import type { Script } from './scripts.ts';
import { nameOf, type RedisTarget } from './target.ts';

/** Milliseconds between two attempts to connect: at first, and at most. */
const RECONNECT_DELAY_MS = { first: 50, most: 1000 };
/** Milliseconds for the server to say goodbye. */
const GOODBYE_TIMEOUT_MS = 500;
/** Milliseconds between two looks at what a server says of itself, which its operator may have changed. */
const CHECK_INTERVAL_MS = 10_000;

/** A connection that heals by itself, to a server that is looked at each time before it is used. */
export class Connection {
  readonly #target: RedisTarget;
  readonly #name: string;
  readonly #log: Log;
  #client: Client | undefined;
  /** Whether this server, on this connection, was looked at and found good. */
  #isGood = false;
  #wasGood = false;
  #isClosed = false;
  /** Attempts to connect since it was last good. */
  #attempts = 0;
  /** Why it is not connected. */
  #fault: Error | undefined;
  #found: Examination = { doubts: [], warnings: [] };

  constructor(target: RedisTarget, log: Log) {
    this.#target = target;
    this.#name = nameOf(target);
    this.#log = log;
  }

  get doubts(): readonly string[] {
    return this.#found.doubts;
  }

  /** @throws Error that says why the server cannot be used. */
  async open(): Promise<void> {
    const client = await createClient(this.#target, () => this.#delay());
    this.#client = client;
    client.on('error', (error: Error) => {
      this.#fault = error;
    });
    for (const event of ['connect', 'close'] as const) {
      client.on(event, () => {
        this.#isGood = false;
      });
    }
    try {
      await client.connect();
      await this.#examine(client);
    } catch (error) {
      client.disconnect();
      const { message } = this.#unavailable(error);
      throw new Error(`settings.state: ${message}${hint(this.#target, message)}`);
    }
    client.on('ready', () => this.#examineAgain(client));
    const looking = setInterval(() => this.#isGood && this.#examineAgain(client), CHECK_INTERVAL_MS).unref();
    client.once('end', () => clearInterval(looking));
  }

  get(key: string): Promise<string | null> {
    return this.#ask(key, (client) => client.get(key));
  }

  /** Runs a script on one key: one round trip, two where the server does not know it yet. */
  run({ text, sha }: Script, key: string, words: readonly string[]): Promise<unknown> {
    return this.#ask(key, async (client) => {
      try {
        return await client.evalsha(sha, 1, key, ...words);
      } catch (error) {
        if (!isReply(error, 'NOSCRIPT')) throw error;
        return client.eval(text, 1, key, ...words);
      }
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    if (client === undefined) return;
    const timer = setTimeout(() => client.disconnect(), GOODBYE_TIMEOUT_MS);
    await client.quit().catch(() => client.disconnect());
    clearTimeout(timer);
  }

  async #ask<T>(key: string, command: (client: Client) => Promise<T>): Promise<T> {
    if (this.#client === undefined || !this.#isGood) throw this.#unavailable(undefined);
    try {
      return await command(this.#client);
    } catch (error) {
      // What a script says of it has more before it in older versions.
      if (isReply(error) && error.message.includes('WRONGTYPE ')) throw new StateUnreadable(key);
      throw this.#unavailable(error);
    }
  }

  /** Why the connection broke says more than that it is gone. */
  #unavailable(error: unknown): StateUnavailable {
    const says = isReply(error) || error instanceof StateUnavailable;
    return unavailable(this.#target, says ? error : (this.#fault ?? error));
  }

  /** @throws Error when the server cannot be used. */
  async #examine(client: Client): Promise<void> {
    // The library goes on with database 0 where it cannot have another one.
    const [, info, config] = await Promise.all([
      this.#target.db === 0 || client.select(this.#target.db),
      client.info(),
      client.config('GET', 'appendfsync').catch((error: unknown) => {
        if (!isReply(error)) throw error;
        return undefined;
      }),
    ]);
    const appendfsync = Array.isArray(config) ? String(config[1]) : undefined;
    const found = examine(this.#name, info, appendfsync);
    const known = [...this.#found.doubts, ...this.#found.warnings];
    // At the start it is up to the service what doubts mean.
    const told = this.#wasGood ? [...found.doubts, ...found.warnings] : found.warnings;
    for (const text of told) if (!known.includes(text)) this.#log.warn(text);
    this.#found = found;
    this.#fault = undefined;
    this.#attempts = 0;
    this.#isGood = true;
    this.#wasGood = true;
  }

  /** Another server may be there, or the same one without what it held. */
  async #examineAgain(client: Client): Promise<void> {
    try {
      await this.#examine(client);
    } catch (error) {
      this.#fault = this.#unavailable(error);
      client.disconnect(true);
    }
  }

  /** Nothing is tried again before the first examination, nor in the end. */
  #delay(): number | null {
    if (this.#isClosed || !this.#wasGood) return null;
    return Math.min(RECONNECT_DELAY_MS.first * 2 ** this.#attempts++, RECONNECT_DELAY_MS.most);
  }
}
