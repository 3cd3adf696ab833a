import type { LoadedConfig } from '../config/index.ts';
import { drain } from '../http/drain.ts';
import { Connections, createHttpServer } from '../http/limits.ts';
import { errorForLog } from '../kernel/refusal.ts';
import { listen, surviveRefusals, urlOf } from '../lib/http/listen.ts';
import { withTimeout } from '../lib/time/with-timeout.ts';
import type { Phase } from '../plugins-sdk/services.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { Debts } from '../plugins-sdk/state/debts.ts';
import { DRAIN_TIME_MS, drained, LONGEST_DRAIN_MS } from './drain.ts';
import { Generation } from './generation.ts';
import { addressOf, drainDelayOf, limitClients } from './listener.ts';
import { logSettings, type ServiceLog } from './log.ts';
import { MeterRegistry } from './meter-registry.ts';
import { faultsOf, type ReadVariables, readNow } from './reload-faults.ts';
import { ReloadQueue } from './reload-queue.ts';
import { announce, report } from './report.ts';
import type { StateClient } from './shared-state.ts';
import type { Signers } from './signers.ts';
import type { LastReload } from './status.ts';
import { NOT_RELOADED } from './workers/messages.ts';
import { fingerprintOf, type Prepared, quiet, type WorkerLink } from './workers/worker-link.ts';

/** Milliseconds in which clients of a worker that leaves learn that their connection ends. */
const LEAVE_DELAY_MS = 250;

type Load = (env: Environment, announces: boolean) => Promise<LoadedConfig>;

/** The one server of a service, and the generations of its config. */
export class Server {
  readonly #signers: Signers;
  readonly #log: ServiceLog;
  readonly #load: Load;
  readonly #link: WorkerLink | undefined;
  readonly #state: StateClient | undefined;
  readonly #meters: MeterRegistry;
  readonly #debts = new Debts();
  readonly #server = createHttpServer();
  readonly #connections = new Connections(this.#server, (request, response) => this.#current.handle(request, response));
  /** Generations that still have requests, the present one included. */
  readonly #generations = new Set<Generation>();
  #generation: Generation | undefined;
  /** What it started with: where it listens, whatever later configs say. */
  #first: LoadedConfig | undefined;
  #phase: Phase = 'starting';
  #lastReload: LastReload = { succeeded: true, inForceSince: 0, generation: 0 };
  readonly #reloads = new ReloadQueue(true);
  /** The latest reload, once it has plugins to stop if it is not committed. */
  #replacing: Promise<Prepared | undefined> = Promise.resolve(undefined);
  #stopping: Promise<void> | undefined;

  constructor(signers: Signers, log: ServiceLog, load: Load, state?: StateClient, link?: WorkerLink) {
    this.#signers = signers;
    this.#log = log;
    this.#load = load;
    this.#state = state;
    this.#link = link;
    this.#meters = new MeterRegistry(({ name }, error) =>
      log.error('the metrics sink failed: measurements are lost', { instrument: name, error: errorForLog(error) }),
    );
    limitClients(this.#server, () => this.#current.connectionLimits, log);
    surviveRefusals(this.#server, (detail) => log.warn('connections cannot be accepted', { detail }));
  }

  get #current(): Generation {
    if (this.#generation === undefined) throw new Error('the service has not started');
    return this.#generation;
  }

  /** @param listening runs before anybody is told. @returns the URL that it listens on. */
  async start(loaded: LoadedConfig, listening: () => Promise<void>): Promise<string> {
    const announces = this.#link?.announces ?? true;
    const [generation, say] = this.#generationOf(loaded, announces);
    this.#first = loaded;
    this.#install(generation);
    try {
      await this.#state?.start();
      await generation.start();
      generation.commit();
      await this.#listen(loaded).then(listening);
    } catch (error) {
      await this.#remove(generation, 0);
      await Promise.all([this.#state?.close(), this.#signers.close()]);
      throw error;
    }
    say();
    const url = urlOf(this.#server);
    if (announces) announce(this.#log, url, { loaded, signers: this.#signers, state: this.#state });
    return url;
  }

  /** Of the config in force. */
  operations(): Generation['operations'] {
    return this.#current.operations;
  }

  serve(): void {
    if (!this.#isStopping()) this.#phase = 'serving';
  }

  reload(variables: ReadVariables): Promise<boolean> {
    return this.#reloads.run(() => this.#reload(variables));
  }

  stop(others = false): Promise<void> {
    this.#stopping ??= this.#stop(others);
    return this.#stopping;
  }

  async prepare(variables: ReadVariables, announces: boolean): Promise<Prepared | undefined> {
    if (this.#isStopping()) return undefined;
    try {
      const env = await readNow(variables);
      const loaded = await this.#load(env, announces);
      if (this.#isStopping()) return undefined;
      const preparing = this.#prepare(loaded, env, announces);
      this.#replacing = preparing.catch(() => undefined);
      return await preparing;
    } catch (error) {
      this.#lastReload = { ...this.#lastReload, succeeded: false };
      throw error;
    }
  }

  async #reload(variables: ReadVariables): Promise<boolean> {
    try {
      const prepared = await this.prepare(variables, true);
      prepared?.commit();
      return prepared !== undefined && !this.#isStopping();
    } catch (error) {
      // The service stops: the error of a reload matters to nobody.
      if (this.#isStopping()) return false;
      for (const line of [...faultsOf(error), NOT_RELOADED]) this.#log.error(line);
      return false;
    }
  }

  async #prepare(loaded: LoadedConfig, env: Environment, announces: boolean): Promise<Prepared | undefined> {
    const [old, first, signers] = [this.#current, this.#first ?? loaded, this.#signers];
    const [next, say] = this.#generationOf(loaded, announces, old);
    try {
      await next.start();
    } catch (error) {
      await next.letGo(this.#generations);
      throw error;
    }
    let isOver = false;
    const abort = async () => {
      if (isOver) return;
      isOver = true;
      this.#lastReload = { ...this.#lastReload, succeeded: false };
      await next.stop(0);
      await next.letGo(this.#generations);
    };
    const commit = () => {
      if (isOver || this.#isStopping()) return;
      isOver = true;
      next.commit();
      this.#install(next);
      this.#log.setLevel?.(logSettings(env).level);
      say();
      if (announces) report(this.#log, { first, before: old.loaded, after: loaded, env, signers });
      void this.#retire(old);
    };
    return { config: fingerprintOf(loaded, first), commit, abort };
  }

  #listen(loaded: LoadedConfig): Promise<void> {
    const address = addressOf(loaded.config);
    if (this.#link === undefined) return listen(this.#server, address);
    return this.#link.listen(this.#server, address, fingerprintOf(loaded, loaded));
  }

  /** @returns it, and what has it say what it does from now on, where others say the same until then. */
  #generationOf(loaded: LoadedConfig, announces: boolean, before?: Generation): [Generation, () => void] {
    const { log, say } = announces ? { log: this.#log, say: () => undefined } : quiet(this.#log);
    const [meters, stateEngine, debts, workers] = [this.#meters, this.#state, this.#debts, this.#link?.workers];
    const surroundings = {
      ...this.#signers.addressesIn(loaded),
      ...{ log, now: Date.now, meters, stateEngine, debts, workers, lastReload: () => this.#lastReload },
      ...{ status: () => this.#generation?.status.read(), phase: () => this.#phase },
    };
    return [new Generation(loaded, surroundings, () => this.#signers.release(loaded.config), before), say];
  }

  #install(generation: Generation): void {
    const generations = this.#lastReload.generation + 1;
    this.#lastReload = { succeeded: true, inForceSince: Date.now() / 1000, generation: generations };
    this.#generation = generation;
    this.#generations.add(generation);
  }

  #isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Lets the requests of a replaced generation end first. */
  async #retire(old: Generation): Promise<void> {
    old.endStreams();
    await old.served();
    await withTimeout(DRAIN_TIME_MS, old.drained());
    old.tell();
    await this.#remove(old, LONGEST_DRAIN_MS);
  }

  /** Stops a generation, and closes the state that no other generation uses. */
  async #remove(generation: Generation, patience: number): Promise<void> {
    await generation.stop(patience);
    if (this.#generations.delete(generation)) await generation.letGo(this.#generations);
  }

  async #stop(others: boolean): Promise<void> {
    if (!others) this.#phase = 'stopping';
    const started = performance.now();
    const generations = [...this.#generations];
    for (const generation of generations) generation.endStreams();
    const delay = drainDelayOf(this.#current.loaded.config);
    const closed = drain(this.#server, this.#connections, others ? Math.min(delay, LEAVE_DELAY_MS) : delay);
    let isServed = false;
    const served = closed.then(() => Promise.all(generations.map((generation) => generation.served())));
    const ended = served.then(() => {
      isServed = true;
      return Promise.all(generations.map((generation) => generation.drained()));
    });
    if (!(await drained(ended, this.#debts, delay))) {
      if (!isServed) this.#log.warn('requests were cut off: they did not finish in time');
      for (const generation of generations) generation.tell();
    }
    this.#debts.tell(this.#log);
    this.#connections.closeAll();
    const patience = Math.max(LONGEST_DRAIN_MS + delay - (performance.now() - started), 0);
    // A reload that has started plugins is waited for; one that has started none stops by itself.
    const aborted = this.#replacing.then((prepared) => prepared?.abort());
    await withTimeout(patience, aborted);
    await Promise.all(generations.map((generation) => this.#remove(generation, patience)));
    await Promise.all([this.#state?.close(), this.#signers.close()]);
  }
}
