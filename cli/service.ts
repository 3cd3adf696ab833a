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
import { drain } from './drain.ts';
import { endsWithin } from './ends-within.ts';
import { Generation } from './generation.ts';
import { addressOf, drainDelayOf, listener } from './listener.ts';
import { compare } from './reload.ts';
import { requestLog } from './request-log.ts';
import { RefusedConnections, watchDescriptors } from './saturation.ts';
import { openState, type StateClient } from './shared-state.ts';
import { messageOf } from './text.ts';

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
  /** Stops accepting, lets work in flight finish within bounds, then lets go of everything. */
  stop(): Promise<void>;
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

/** All definitions that a service consists of, before an operator's plugins. */
export function definitions(signer?: () => Signer, tracing = false): Definition[] {
  const plugins = builtins(signer);
  return [listener(plugins), requestLog(tracing), ...plugins];
}

/**
 * Loads the config, derives the signer, registers the plugins, starts them and listens.
 * @throws ConfigErrors and other errors whose message is one clear line per fault.
 */
export async function startService({ file, env, log }: ServiceOptions & { readonly log: Log }): Promise<Service> {
  let signer: Signer | undefined;
  const theSigner = () => {
    signer ??= signerFromEnvironment(env);
    return signer;
  };
  const own = definitions(theSigner, /^(debug|trace)$/.test(env.LOG_LEVEL ?? ''));
  const load = async (variables: Environment) => {
    const loaded = await loadConfig({ file, env: variables, builtins: own });
    for (const { path, message } of loaded.warnings) log.warn(path === '' ? message : `${path}: ${message}`);
    return loaded;
  };
  const loaded = await load(env);
  // A missing or bad key is worth an error before anything is set up.
  signerAddressOf(loaded);
  if (env.SERVICE_MNEMONIC && env.SERVICE_PRIVATE_KEY) {
    log.warn('SERVICE_MNEMONIC and SERVICE_PRIVATE_KEY are both set: the mnemonic wins');
  }
  const path = (relative: string) => resolve(dirname(file), relative);
  const state = openState(loaded, { log, now: Date.now, path });
  const service = new Server(() => signer, log, load, state);
  const url = await service.start(loaded);
  return {
    url,
    signer: { address: signerAddressOf(loaded) },
    reload: (variables) => service.reload(variables),
    stop: () => service.stop(),
  };
}

/** Every stage with its taps, the routes and who observes, as the service of this config would have them, and who is isolated. */
export async function describeService({
  file,
  env,
}: ServiceOptions): Promise<PluginSet & { readonly isolated: ReadonlySet<string> }> {
  const signer = createSigner(`${'0'.repeat(63)}1`);
  const loaded = await loadConfig({ file, env, builtins: definitions(() => signer) });
  const nothing = () => undefined;
  const log: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const states = new StateStore();
  const node = signerAddressOf(loaded);
  const meters = new MeterRegistry().draft();
  const ask = () => Promise.reject(new Error('the service has not started'));
  const isolated = new Set(loaded.plugins.flatMap((choice) => (choice.isolated ? [choice.definition.name] : [])));
  const set = assemble(loaded, { node, log, now: Date.now, states, meters, ask, phase: () => 'starting' });
  return { ...set, isolated };
}

/** The one server of a service, and the generations of its config. */
class Server {
  /** The key in this process, if a plugin signs with it. */
  readonly #key: () => Signer | undefined;
  readonly #log: Log;
  readonly #load: (env: Environment) => Promise<LoadedConfig>;
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

  constructor(
    key: () => Signer | undefined,
    log: Log,
    load: (env: Environment) => Promise<LoadedConfig>,
    state?: StateClient,
  ) {
    this.#key = key;
    this.#log = log;
    this.#load = load;
    this.#state = state;
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
    const generation = this.#generationOf(loaded);
    this.#address = addressOf(loaded.config);
    this.#install(generation);
    try {
      await this.#state?.start();
      await generation.start();
      await listen(this.#server, this.#address);
    } catch (error) {
      await this.#remove(generation, 0);
      await this.#state?.close();
      throw error;
    }
    this.#phase = 'serving';
    const url = urlOf(this.#server);
    this.#announce(url, loaded);
    return url;
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

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #reload(variables: ReadVariables): Promise<boolean> {
    try {
      if (this.#isStopping()) return false;
      const env = await read(variables);
      const loaded = await this.#load(env);
      if (this.#isStopping()) return false;
      const replacing = this.#replace(loaded, env);
      this.#replacing = replacing.catch(() => undefined);
      return await replacing;
    } catch (error) {
      // The service stops: the error of a reload matters to nobody.
      if (this.#isStopping()) return false;
      for (const line of messageOf(error).split('\n')) this.#log.error(line);
      if (!(error instanceof ConfigErrors || error instanceof Unreadable))
        this.#log.error('the plugins of the new config cannot be used');
      this.#log.error('the config was not reloaded: the one before stays in force');
      return false;
    }
  }

  async #replace(loaded: LoadedConfig, env: Environment): Promise<boolean> {
    const old = this.#current;
    const next = this.#generationOf(loaded, old);
    try {
      await next.start();
    } catch (error) {
      await next.letGo(this.#generations);
      throw error;
    }
    if (this.#isStopping()) {
      await next.stop(0);
      await next.letGo(this.#generations);
      return false;
    }
    this.#install(next);
    this.#report(old.loaded, loaded, env);
    void this.#retire(old);
    return true;
  }

  #generationOf(loaded: LoadedConfig, before?: Generation): Generation {
    const node = signerAddressOf(loaded);
    const [log, meters, shared] = [this.#log, this.#meters, this.#state];
    return new Generation(loaded, { node, log, now: Date.now, meters, shared, phase: () => this.#phase }, before);
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

  async #stop(): Promise<void> {
    this.#phase = 'stopping';
    const started = performance.now();
    const generations = [...this.#generations];
    const delay = drainDelayOf(this.#current.loaded.config);
    const ended = drain(this.#server, this.#connections, delay).then(() =>
      Promise.all(generations.map((generation) => generation.drained())),
    );
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
