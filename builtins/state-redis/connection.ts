import type { Log } from '../../plugins-sdk/index.ts';
import { StatePartUnavailable, StateUnavailable, StateUnreadable } from '../../plugins-sdk/state.ts';
import { type Client, createClient, type Server } from './client.ts';
import { type Examination, examine } from './examine.ts';
import { hint, isReply, unavailable } from './reason.ts';
import type { Scripted } from './scripts.ts';
import { nameOf, type RedisTarget } from './target.ts';

/** Milliseconds between two attempts to connect: the first delay, and the longest. */
const RECONNECT_DELAY_MS = { first: 50, most: 1000 };
/** Milliseconds between two examinations of a server, whose operator may have changed its settings. */
const CHECK_INTERVAL_MS = 10_000;

/** Connections to servers, which reconnect by themselves. Each server is examined before it is used. */
export class Connection {
  readonly #target: RedisTarget;
  readonly #log: Log;
  #client: Client | undefined;
  /** Servers that were examined on their present connection and may be used. */
  readonly #good = new Set<Server>();
  readonly #found = new WeakMap<Server, Examination>();
  /** The first examination of each server. */
  readonly #looks = new WeakMap<Server, Promise<void>>();
  /** Failed attempts to connect since the last success. */
  #attempts = 0;
  /** Why the last server was lost or refused. */
  #fault: StateUnavailable | undefined;
  /** Whether the log says that some keys have no server. */
  #isPartial = false;
  /** The timer of the examinations; undefined until the first has succeeded, and after `close`. */
  #timer: NodeJS.Timeout | undefined;

  constructor(target: RedisTarget, log: Log) {
    this.#target = target;
    this.#log = log;
  }

  get doubts(): readonly string[] {
    return this.#primaries().flatMap((server) => this.#found.get(server)?.doubts ?? []);
  }

  /** Connects and examines all servers. @throws Error that says why one cannot be used. */
  async open(): Promise<void> {
    const retry = () => this.#delay();
    const client = await createClient(this.#target, retry, (server) => this.#watch(server));
    this.#client = client;
    client.commands.on('error', ({ lastNodeError }: { lastNodeError?: unknown }) => {
      if (isReply(lastNodeError)) this.#fault = this.#unavailable(lastNodeError);
    });
    try {
      await client.commands.connect();
      const primaries = client.primaries();
      if (primaries.length === 0)
        throw new StateUnavailable(`${nameOf(this.#target)} is no cluster: no node keeps keys`);
      await Promise.all(primaries.map((server) => this.#looks.get(server)));
    } catch (error) {
      client.commands.disconnect();
      const { message } = this.#unavailable(error);
      throw new Error(`settings.state: ${message}${hint(this.#target, message)}`);
    }
    this.#fault = undefined;
    this.#timer = setInterval(() => {
      for (const server of client.primaries()) if (this.#good.has(server)) this.#look(server).catch(() => undefined);
    }, CHECK_INTERVAL_MS).unref();
  }

  get(key: string): Promise<string | null> {
    return this.#ask(key, (client) => client.get(key));
  }

  /** Runs a script on one key, in one round trip, or in two if the server has forgotten the script. */
  run(script: keyof Scripted, key: string, words: readonly string[]): Promise<unknown> {
    return this.#ask(key, (client) => client[script](key, ...words));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#client?.commands.disconnect();
  }

  async #ask<T>(key: string, command: (client: Client['commands']) => Promise<T>): Promise<T> {
    const client = this.#client;
    const server = client?.primaryOf(key);
    if (client === undefined || server === undefined || !this.#good.has(server)) throw this.#lost(undefined);
    try {
      return await command(client.commands);
    } catch (error) {
      // Older versions put more text before the code in a script's error.
      if (isReply(error) && error.message.includes('WRONGTYPE ')) throw new StateUnreadable(key);
      if (isReply(error) && !isReply(error, 'CLUSTERDOWN Hash slot')) throw this.#unavailable(error, server);
      throw this.#lost(error, server);
    }
  }

  /** Makes the error for a key without a server. In a cluster other keys may still have theirs. */
  #lost(error: unknown, server?: Server): StateUnavailable {
    const unavailable = this.#unavailable(error, server);
    const isPartial = this.#target.kind === 'urls' && this.#primaries().some((other) => this.#good.has(other));
    if (!isPartial) return unavailable;
    if (!this.#isPartial) this.#log.warn('some keys of settings.state are away', { error: unavailable.message });
    this.#isPartial = true;
    return new StatePartUnavailable(unavailable.message);
  }

  /** Makes the error of a server, preferably with the reason why its connection broke. */
  #unavailable(error: unknown, server?: Server): StateUnavailable {
    const says = isReply(error) || error instanceof StateUnavailable;
    return unavailable(this.#nameOf(server), this.#target, says ? error : (this.#fault ?? error));
  }

  #primaries(): readonly Server[] {
    return this.#client?.primaries() ?? [];
  }

  /** Names a server in messages, as precisely as it is known; otherwise the configured target. */
  #nameOf(server: Server | undefined): string {
    if (server === undefined) return nameOf(this.#target);
    const { host = '', port = 0 } = server.options;
    if (this.#target.kind !== 'sentinel') return nameOf({ places: [{ host, port }] });
    const { remoteAddress, remotePort = 0 } = server.stream ?? {};
    return nameOf(remoteAddress === undefined ? this.#target : { places: [{ host: remoteAddress, port: remotePort }] });
  }

  /** Examines a server whenever it connects: it may be another one, or have lost its data. */
  #watch(server: Server): void {
    server.on('error', (error: Error) => {
      this.#fault = unavailable(this.#nameOf(server), this.#target, error);
    });
    for (const event of ['connect', 'close'] as const) server.on(event, () => this.#good.delete(server));
    const look = new Promise<void>((resolve, reject) => {
      server.on('ready', () => this.#look(server).then(resolve, reject));
      server.once('end', () => {
        this.#fault ??= this.#unavailable(new Error('Connection is closed.'), server);
        reject(this.#fault);
      });
    });
    look.catch(() => undefined);
    this.#looks.set(server, look);
    // A replica is not connected until it becomes a primary.
    if (this.#target.kind === 'urls' && server.options.readOnly !== true) server.connect().catch(() => undefined);
  }

  /** Examines a server. @throws Error if it cannot be used; its connection is then ended. */
  async #look(server: Server): Promise<void> {
    try {
      this.#accept(server, await this.#examine(server));
    } catch (error) {
      this.#fault = this.#unavailable(error, server);
      server.disconnect(true);
      throw error;
    }
  }

  async #examine(server: Server): Promise<Examination> {
    const { kind, db } = this.#target;
    // If a server refuses the database, the library silently goes on with database 0.
    const [, info, config] = await Promise.all([
      db === 0 || server.select(db),
      server.info(),
      server.config('GET', 'appendfsync').catch((error: unknown) => {
        if (!isReply(error)) throw error;
        return undefined;
      }),
    ]);
    const appendfsync = Array.isArray(config) ? String(config[1]) : undefined;
    return examine(this.#nameOf(server), kind, info, appendfsync);
  }

  /** Accepts a server for use, and logs its new doubts and warnings. */
  #accept(server: Server, found: Examination): void {
    const { doubts, warnings } = this.#found.get(server) ?? { doubts: [], warnings: [] };
    // At the start the service itself decides about doubts.
    const told = this.#timer === undefined ? found.warnings : [...found.doubts, ...found.warnings];
    for (const text of told) if (!doubts.includes(text) && !warnings.includes(text)) this.#log.warn(text);
    this.#found.set(server, found);
    // Until all servers are connected, one that is good does not hide why another is not.
    if (this.#timer !== undefined) this.#fault = undefined;
    this.#attempts = 0;
    this.#good.add(server);
    if (!this.#isPartial || !this.#primaries().every((other) => this.#good.has(other))) return;
    this.#isPartial = false;
    this.#log.info('all keys of settings.state are back');
  }

  /** Returns the delay before the next attempt to connect; `null` before the first success and after `close`. */
  #delay(): number | null {
    if (this.#timer === undefined) return null;
    return Math.min(RECONNECT_DELAY_MS.first * 2 ** this.#attempts++, RECONNECT_DELAY_MS.most);
  }
}
