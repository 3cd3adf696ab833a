import type { LoadedConfig } from '../config/index.ts';
import { drain } from '../http/drain.ts';
import { Connections, createHttpServer } from '../http/limits.ts';
import { errorForLog } from '../kernel/refusal.ts';
import { surviveRefusals } from '../lib/http/listen.ts';
import { withTimeout } from '../lib/time.ts';
import type { Log } from '../plugins-sdk/log.ts';
import type { Phase } from '../plugins-sdk/services.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { Debts } from '../plugins-sdk/state/debts.ts';
import { DRAIN_TIME_MS, drained, LONGEST_DRAIN_MS } from './drain.ts';
import { Generation, type Shared } from './generation.ts';
import { drainDelayOf, limitClients } from './listener.ts';
import { logSettings } from './log.ts';
import { MeterRegistry } from './meter-registry.ts';
import { type ReadVariables, reloadQueue } from './reload.ts';
import { report } from './report.ts';
import type { LastReload } from './status.ts';
import { describeError } from './terminal.ts';

/** Reads and checks the config for a reload. */
type Load = (env: Environment, news: Log) => Promise<LoadedConfig>;

/** The one server of a service, and the generations of its config. */
export class Server {
  readonly http = createHttpServer();
  readonly meters: MeterRegistry;
  readonly #shared: Shared;
  readonly #connections = new Connections(this.http, (...request) => this.#generation.app.handle(...request));
  /** The generation in force; before the start, the one that will be. */
  #generation: Generation;
  /** The config of the start. It sets where the server listens, whatever later configs say. */
  readonly #first: LoadedConfig;
  #phase: Phase = 'starting';
  #lastReload: LastReload = { succeeded: true, inForceSince: Date.now() / 1000, generation: 1 };
  readonly #queue = reloadQueue();
  /** The latest reload that has set up plugins; a stop waits for it, because they may have to be stopped. */
  #replacing: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(loaded: LoadedConfig, parts: Pick<Shared, 'log' | 'signers' | 'stateEngine' | 'workers' | 'now'>) {
    const { log } = parts;
    this.#first = loaded;
    this.meters = new MeterRegistry(({ name }, error) =>
      log.warn('an instrument cannot be measured', { instrument: name, error: errorForLog(error) }),
    );
    this.#shared = {
      ...parts,
      ...{ meters: this.meters, debts: new Debts(), lastReload: () => this.#lastReload, phase: () => this.#phase },
      // The first generation does not exist yet while its plugins are set up.
      status: () => this.#generation?.status.read(),
      generations: new Set(),
    };
    this.#generation = new Generation(loaded, this.#shared);
    limitClients(this.http, () => this.#generation.connectionLimits, log);
    surviveRefusals(this.http, (detail) => log.warn('connections cannot be accepted', { detail }));
  }

  /** Starts the state engine and the plugins, then listens. @param listen opens the port. */
  async start(listen: () => Promise<void>): Promise<void> {
    const generation = this.#generation;
    try {
      await this.#shared.stateEngine?.start();
      await generation.start();
      generation.commit();
      await listen();
    } catch (error) {
      await generation.stop(LONGEST_DRAIN_MS);
      await this.#close();
      throw error;
    }
    if (this.#phase === 'starting') this.#phase = 'serving';
  }

  /** The plugins of the config in force; before the start, of the one that will be. */
  get plugins(): Generation['plugins'] {
    return this.#generation.plugins;
  }

  /** Queues a reload. @returns whether the new config is in force. */
  reload(load: Load, variables: ReadVariables, news: Log): Promise<boolean> {
    return this.#queue(() => this.#reload(load, variables, news));
  }

  /** Drains the requests, then stops plugins, state engine and signers, in bounded time. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** Stops what `start` has started, without a drain; plugins have a second. */
  async stopAtOnce(): Promise<void> {
    await this.#generation.stop(0);
    await this.#close();
  }

  async #reload(load: Load, variables: ReadVariables, news: Log): Promise<boolean> {
    try {
      const env = await variables();
      // Read first: an invalid level keeps the config from coming into force.
      const { level } = logSettings(env);
      const loaded = await load(env, news);
      if (this.#phase === 'stopping') return false;
      const replacing = this.#replace(loaded);
      this.#replacing = replacing.catch(() => undefined);
      const before = await replacing;
      this.#shared.log.setLevel?.(level);
      report(news, { first: this.#first, before, after: loaded, env, signers: this.#shared.signers });
      return true;
    } catch (error) {
      // While the service stops, a reload's error is of no use.
      if (this.#phase === 'stopping') return false;
      this.#lastReload = { ...this.#lastReload, succeeded: false };
      for (const line of [...describeError(error), 'the config was not reloaded: the one before stays in force'])
        this.#shared.log.error(line);
      return false;
    }
  }

  /** @returns the config that was in force before. */
  async #replace(loaded: LoadedConfig): Promise<LoadedConfig> {
    const old = this.#generation;
    const next = new Generation(loaded, this.#shared, old);
    try {
      await next.start();
      if (this.#phase === 'stopping') throw new Error('the service stops');
    } catch (error) {
      await next.stop(this.#phase === 'stopping' ? 0 : LONGEST_DRAIN_MS);
      throw error;
    }
    next.commit();
    const generation = this.#lastReload.generation + 1;
    this.#lastReload = { succeeded: true, inForceSince: Date.now() / 1000, generation };
    this.#generation = next;
    void this.#retire(old);
    return old.loaded;
  }

  /** Stops a replaced generation after its requests have ended. */
  async #retire(old: Generation): Promise<void> {
    old.app.endStreams();
    await old.served();
    await withTimeout(DRAIN_TIME_MS, old.drained());
    old.background.tell(this.#shared.log);
    await old.stop(LONGEST_DRAIN_MS);
  }

  async #stop(): Promise<void> {
    this.#phase = 'stopping';
    const started = performance.now();
    const generations = [...this.#shared.generations];
    for (const generation of generations) generation.app.endStreams();
    const delay = drainDelayOf(this.#generation.loaded.config);
    let isServed = false;
    const end = async () => {
      await drain(this.http, this.#connections, delay);
      await Promise.all(generations.map((generation) => generation.served()));
      isServed = true;
      await Promise.all(generations.map((generation) => generation.drained()));
    };
    if (!(await drained(end(), this.#shared.debts, delay))) {
      if (!isServed) this.#shared.log.warn('requests were cut off: they did not finish in time');
      for (const generation of generations) generation.background.tell(this.#shared.log);
    }
    this.#shared.debts.tell(this.#shared.log);
    this.#connections.closeAll();
    const patience = Math.max(LONGEST_DRAIN_MS + delay - (performance.now() - started), 0);
    // Waits for a reload that has started plugins. A reload without any stops by itself.
    await withTimeout(patience, this.#replacing);
    await Promise.all(generations.map((generation) => generation.stop(patience)));
    await this.#close();
  }

  /** Closes what the generations have shared. */
  async #close(): Promise<void> {
    await Promise.all([this.#shared.stateEngine?.close(), this.#shared.signers.close()]);
  }
}
