import { dirname, resolve } from 'node:path';
import { builtins } from '../builtins/index.ts';
import { ConfigErrors, type LoadedConfig, loadConfig } from '../config/index.ts';
import { Connections } from '../http/connections.ts';
import { createHttpServer } from '../http/server.ts';
import { describe } from '../kernel/refusal.ts';
import type { PluginSet } from '../kernel/registry.ts';
import type { Definition, Log, Phase } from '../plugins-sdk/define.ts';
import { limitConnections } from '../plugins-sdk/index.ts';
import { type Address as ListenAddress, listen, urlOf } from '../plugins-sdk/listen.ts';
import { MeterRegistry } from '../plugins-sdk/meters.ts';
import { createSigner, type Signer, signerFromEnvironment } from '../plugins-sdk/signer.ts';
import { StateStore } from '../plugins-sdk/state.ts';
import { assemble, signerAddressOf } from './assemble.ts';
import { drain, leave } from './drain.ts';
import { endsWithin } from './ends-within.ts';
import { Generation } from './generation.ts';
import { addressOf, drainDelayOf, listener } from './listener.ts';
import { compare } from './reload.ts';
import { requestLog } from './request-log.ts';
import { RefusedConnections, watchDescriptors } from './saturation.ts';
import { openState, type StateClient } from './shared-state.ts';
import { messageOf } from './text.ts';
import { NOT_RELOADED } from './workers/messages.ts';
import { fingerprintOf, type Place, type Prepared, quiet } from './workers/place.ts';
import { checkTogether } from './workers/rules.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface ServiceOptions {
  /** Absolute path of the config file. */
  readonly file: string;
  /** Variables for `${VAR}` and the signer. */
  readonly env: Environment;
}

/** A running service. */
export interface Service {
  readonly url: string;
  /** Whose signatures its answers carry. */
  readonly signer: Pick<Signer, 'address'>;
  /**
   * Reads the config file again and serves by it from then on; requests under way end by the config that they began
   * with. On any error everything stays as it is. What happened is in the log.
   * Reloads run one after the other. Calls that come while one waits to begin share it; the first of them reads the variables.
   * @param variables reads the variables when the reload begins; the signer stays.
   * @returns whether the new config is in force.
   */
  reload(variables: ReadVariables): Promise<boolean>;
  /**
   * The first half of a reload: starts the config that the file has now, and leaves the one before in force.
   * @returns nothing when the service stops. @throws Error
   */
  prepare(variables: ReadVariables, announces: boolean): Promise<Prepared | undefined>;
  /** Says from now on that it is ready; a service by itself does so once it listens. */
  serve(): void;
  /** Milliseconds that a stop may take. */
  stopTime(): number;
  /**
   * Stops accepting, lets work in flight finish within bounds, then lets go of everything.
   * @param others whether other processes go on to accept: then nobody needs to hear that the service stops.
   */
  stop(others?: boolean): Promise<void>;
}

/** Reads what the variables are now. */
export type ReadVariables = () => Environment | Promise<Environment>;

/** The variables for a reload cannot be read. */
class Unreadable extends Error {}

/** @throws Unreadable */
async function read(variables: ReadVariables): Promise<Environment> {
  try {
    return await variables();
  } catch (error) {
    throw new Unreadable(messageOf(error));
  }
}

/** Milliseconds that work in flight has to finish after a signal. */
const DRAIN_TIME = 25_000;
/** Milliseconds in which clients of a worker that leaves learn that their connection ends. */
const LEAVE_DELAY = 250;

/** All definitions that a service consists of, before an operator's plugins. */
export function definitions(signer?: () => Signer, tracing = false, place?: Place): Definition[] {
  const plugins = builtins(signer);
  return [listener(plugins, place?.measure), requestLog(tracing), ...plugins];
}

/**
 * Loads the config, derives the signer, registers the plugins, starts them and listens.
 * @throws ConfigErrors and other errors whose message is one clear line per fault.
 */
export async function startService(
  options: ServiceOptions & { readonly log: Log; readonly place?: Place },
): Promise<Service> {
  const { file, env, log, place } = options;
  let signer: Signer | undefined;
  const theSigner = () => {
    signer ??= signerFromEnvironment(env);
    return signer;
  };
  const own = definitions(theSigner, /^(debug|trace)$/.test(env.LOG_LEVEL ?? ''), place);
  const load = async (variables: Environment, announces: boolean) => {
    const loaded = await loadConfig({ file, env: variables, builtins: own });
    const warnings = [...loaded.warnings, ...(place === undefined ? [] : checkTogether(loaded))];
    for (const { path, message } of announces ? warnings : []) log.warn(path === '' ? message : `${path}: ${message}`);
    return loaded;
  };
  const announces = place?.announces ?? true;
  const loaded = await load(env, announces);
  // A missing or bad key is worth an error before anything is set up.
  signerAddressOf(loaded);
  if (announces && env.SERVICE_MNEMONIC && env.SERVICE_PRIVATE_KEY) {
    log.warn('SERVICE_MNEMONIC and SERVICE_PRIVATE_KEY are both set: the mnemonic wins');
  }
  const path = (relative: string) => resolve(dirname(file), relative);
  const state = openState(loaded, { log, now: Date.now, path });
  const service = new Server(() => signer, log, load, state, place);
  const url = await service.start(loaded);
  if (place === undefined) service.serve();
  return {
    url,
    signer: { address: signerAddressOf(loaded) },
    reload: (variables) => service.reload(variables),
    prepare: (variables, aloud) => service.prepare(variables, aloud),
    serve: () => service.serve(),
    stopTime: () => service.stopTime(),
    stop: (others) => service.stop(others),
  };
}

/** The lines that say why the config of a reload cannot be used. */
export function faultsOf(error: unknown): string[] {
  const lines = messageOf(error).split('\n');
  const isOfConfig = error instanceof ConfigErrors || error instanceof Unreadable;
  return isOfConfig ? lines : [...lines, 'the plugins of the new config cannot be used'];
}

/** Every stage with its taps, the routes and who observes, as the service of this config would have them. */
export async function describeService({ file, env }: ServiceOptions): Promise<PluginSet> {
  const signer = createSigner(`${'0'.repeat(63)}1`);
  const loaded = await loadConfig({ file, env, builtins: definitions(() => signer) });
  const nothing = () => undefined;
  const log: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const states = new StateStore();
  const node = signerAddressOf(loaded);
  const meters = new MeterRegistry().draft();
  const ask = () => Promise.reject(new Error('the service has not started'));
  return assemble(loaded, { node, log, now: Date.now, states, meters, ask, phase: () => 'starting' });
}

type Load = (env: Environment, announces: boolean) => Promise<LoadedConfig>;

/** The one server of a service, and the generations of its config. */
class Server {
  /** The key in this process, if a plugin signs with it. */
  readonly #key: () => Signer | undefined;
  readonly #log: Log;
  readonly #load: Load;
  readonly #place: Place | undefined;
  readonly #state: StateClient | undefined;
  readonly #meters: MeterRegistry;
  readonly #server = createHttpServer();
  readonly #connections = new Connections(this.#server, (incoming) => this.#current.handle(incoming));
  /** Generations that still have requests, the present one included. */
  readonly #generations = new Set<Generation>();
  #generation: Generation | undefined;
  /** Where it listens, whatever later configs say. */
  #address: ListenAddress | undefined;
  #phase: Phase = 'starting';
  #reloading: Promise<boolean> = Promise.resolve(true);
  /** The part of a reload that has plugins to stop if it fails. */
  #replacing: Promise<unknown> = Promise.resolve();
  /** A reload that waits for the one before it. */
  #next: Promise<boolean> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(key: () => Signer | undefined, log: Log, load: Load, state?: StateClient, place?: Place) {
    this.#key = key;
    this.#log = log;
    this.#load = load;
    this.#state = state;
    this.#place = place;
    this.#meters = new MeterRegistry(({ name }, error) =>
      log.error('the metrics sink failed: measurements are lost', { instrument: name, error: describe(error) }),
    );
    const limits = () => this.#current.connectionLimits;
    const refused = new RefusedConnections(log, limits);
    limitConnections(this.#server, limits, (limit) => refused.add(limit));
    this.#server.once(
      'close',
      watchDescriptors(log, () => this.#connections.size),
    );
  }

  get #current(): Generation {
    if (this.#generation === undefined) throw new Error('the service has not started');
    return this.#generation;
  }

  /** @returns the URL that it listens on. */
  async start(loaded: LoadedConfig): Promise<string> {
    const announces = this.#place?.announces ?? true;
    const [generation, say] = this.#generationOf(loaded, announces);
    this.#address = addressOf(loaded.config);
    this.#install(generation);
    try {
      await this.#state?.start();
      await generation.start();
      generation.commit();
      await this.#listen(loaded, this.#address);
    } catch (error) {
      await this.#remove(generation, 0);
      await this.#state?.close();
      throw error;
    }
    say();
    const url = urlOf(this.#server);
    if (announces) this.#announce(url, loaded);
    return url;
  }

  serve(): void {
    if (!this.#isStopping()) this.#phase = 'serving';
  }

  stopTime(): number {
    return DRAIN_TIME + drainDelayOf(this.#current.loaded.config);
  }

  reload(variables: ReadVariables): Promise<boolean> {
    // One at a time, so that the files that were read last win.
    const begin = () => {
      this.#next = undefined;
      return this.#reload(variables);
    };
    this.#next ??= this.#reloading.then(begin, begin);
    this.#reloading = this.#next;
    return this.#reloading;
  }

  stop(others = false): Promise<void> {
    this.#stopping ??= this.#stop(others);
    return this.#stopping;
  }

  async prepare(variables: ReadVariables, announces: boolean): Promise<Prepared | undefined> {
    if (this.#isStopping()) return undefined;
    const env = await read(variables);
    const loaded = await this.#load(env, announces);
    if (this.#isStopping()) return undefined;
    const preparing = this.#prepare(loaded, env, announces);
    this.#replacing = preparing.catch(() => undefined);
    return preparing;
  }

  async #reload(variables: ReadVariables): Promise<boolean> {
    try {
      const prepared = await this.prepare(variables, true);
      if (this.#isStopping()) await prepared?.abort();
      else prepared?.commit();
      return prepared !== undefined;
    } catch (error) {
      // The service stops: the error of a reload matters to nobody.
      if (this.#isStopping()) return false;
      for (const line of [...faultsOf(error), NOT_RELOADED]) this.#log.error(line);
      return false;
    }
  }

  async #prepare(loaded: LoadedConfig, env: Environment, announces: boolean): Promise<Prepared | undefined> {
    const old = this.#current;
    const [next, say] = this.#generationOf(loaded, announces, old);
    try {
      await next.start();
    } catch (error) {
      await next.letGo(this.#generations);
      throw error;
    }
    const abort = async () => {
      await next.stop(0);
      await next.letGo(this.#generations);
    };
    const commit = () => {
      next.commit();
      this.#install(next);
      say();
      if (announces) this.#report(old.loaded, loaded, env);
      void this.#retire(old);
    };
    if (!this.#isStopping()) return { config: fingerprintOf(loaded), commit, abort };
    await abort();
    return undefined;
  }

  #listen(loaded: LoadedConfig, address: ListenAddress): Promise<void> {
    if (this.#place === undefined) return listen(this.#server, address);
    return this.#place.listen(this.#server, address, fingerprintOf(loaded));
  }

  /** @returns it, and what has it say what it does from now on, where others say the same until then. */
  #generationOf(loaded: LoadedConfig, announces: boolean, before?: Generation): [Generation, () => void] {
    const node = signerAddressOf(loaded);
    const { log, say } = announces ? { log: this.#log, say: () => undefined } : quiet(this.#log);
    const [meters, shared, workers] = [this.#meters, this.#state, this.#place?.workers];
    const surroundings = { node, log, now: Date.now, meters, shared, workers, phase: () => this.#phase };
    return [new Generation(loaded, surroundings, before), say];
  }

  #install(generation: Generation): void {
    this.#generation = generation;
    this.#generations.add(generation);
  }

  #isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Lets the requests of a replaced generation end first. */
  async #retire(old: Generation): Promise<void> {
    await old.drained();
    await this.#remove(old, DRAIN_TIME);
  }

  /** Stops a generation, and closes the state that no other generation uses. */
  async #remove(generation: Generation, patience: number): Promise<void> {
    await generation.stop(patience);
    if (this.#generations.delete(generation)) await generation.letGo(this.#generations);
  }

  #report(before: LoadedConfig, after: LoadedConfig, env: Environment): void {
    const { endpoints, warnings } = compare(before, after, this.#address ?? addressOf(before.config));
    this.#log.info('config reloaded');
    for (const line of endpoints) this.#log.info(line);
    for (const line of warnings) this.#log.warn(line);
    if (after.plugins.some(({ operator }) => operator)) {
      this.#log.info('plugins were set up anew; changes of their code need a restart');
    }
    const [was, is] = [signerAddressOf(before), signerAddressOf(after)];
    if (was !== is) this.#log.warn(`answers are signed by ${is} instead of ${was}`);
    if (!this.#keepsSigner(env)) this.#log.warn('the signing key stays the same until the service is restarted');
  }

  #keepsSigner(env: Environment): boolean {
    const key = this.#key();
    if (key === undefined || (!env.SERVICE_MNEMONIC && !env.SERVICE_PRIVATE_KEY)) return true;
    try {
      return signerFromEnvironment(env).address === key.address;
    } catch {
      return false;
    }
  }

  #announce(url: string, loaded: LoadedConfig): void {
    const backend = this.#key()?.backend;
    this.#log.info(`listening on ${url}`);
    this.#log.info(`signer ${signerAddressOf(loaded)}`, backend && { backend });
    if (backend === 'ethers')
      this.#log.warn('neither secp256k1 nor tiny-secp256k1 can be loaded: signing is several times slower');
    if (this.#state !== undefined) this.#log.info(`state is kept by the engine "${this.#state.engine}"`);
    for (const { api, name, id } of loaded.endpoints) this.#log.info(`${api}/${name} ${id}`);
  }

  async #stop(others: boolean): Promise<void> {
    if (!others) this.#phase = 'stopping';
    const started = performance.now();
    const generations = [...this.#generations];
    const delay = drainDelayOf(this.#current.loaded.config);
    const closed = others
      ? leave(this.#server, this.#connections, Math.min(delay, LEAVE_DELAY))
      : drain(this.#server, this.#connections, delay);
    const ended = closed.then(() => Promise.all(generations.map((generation) => generation.drained())));
    const drained = await endsWithin(DRAIN_TIME + delay, ended);
    if (!drained) this.#log.warn('requests were cut off: they did not finish in time');
    this.#server.closeAllConnections();
    const patience = Math.max(DRAIN_TIME + delay - (performance.now() - started), 0);
    // A reload under way stops by itself what it has started, which is waited for; one that has started nothing is not.
    await endsWithin(patience, this.#replacing);
    await Promise.all(generations.map((generation) => this.#remove(generation, patience)));
    await this.#state?.close();
  }
}
