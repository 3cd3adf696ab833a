import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { builtins } from '../builtins/index.ts';
import { type LoadedConfig, loadConfig, type PluginChoice, signingHooks } from '../config/index.ts';
import { createHandler, createHttpServer, type Served } from '../kernel/http.ts';
import { Pipeline, type Runtime } from '../kernel/pipeline.ts';
import { describe } from '../kernel/refusal.ts';
import { RegistrationError, Registry, type Sealed, type StageDescription } from '../kernel/registry.ts';
import { type Behaviour, configKey, type Log, type Services, Type } from '../plugins-sdk/define.ts';
import { publicHooks } from '../plugins-sdk/public-hooks.ts';
import { shapes } from '../plugins-sdk/shapes.ts';
import { createSigner, type Signer, signerFromEnvironment } from '../plugins-sdk/signer.ts';

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
  readonly signer: Signer;
  /** Stops accepting, lets work in flight finish within bounds, then lets go of everything. */
  stop(): Promise<void>;
}

const portKey = configKey('server', 'port', Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })));
const hostKey = configKey('server', 'host', Type.Optional(Type.String({ minLength: 1 })));

/** The service's own keys are contributed like a plugin's. */
const listener = {
  name: 'listener',
  budget: 'none',
  required: true,
  keys: [portKey, hostKey],
  setup: () => ({}),
} as const;

/** Milliseconds that plugins have to stop. */
const STOP_TIME = 5000;

/** Milliseconds that a plugin has to start. */
const START_TIME = 30_000;

/** Milliseconds that work in flight has to finish after a signal. */
const DRAIN_TIME = 25_000;

/** All definitions that a service consists of, before an operator's plugins. */
export function definitions(signer?: () => Signer) {
  return [listener, ...builtins(signer)];
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
  const loaded = await loadConfig({ file, env, builtins: definitions(theSigner) });
  for (const { path, message } of loaded.warnings) log.warn(path === '' ? message : `${path}: ${message}`);
  const sealed = assemble(loaded, theSigner(), log);
  const pipeline = createPipeline(sealed, log, /^(debug|trace)$/.test(env.LOG_LEVEL ?? ''));
  await startPlugins(sealed);
  const served: Served = (exchange, status) => {
    const { requestId, method, route, resolved } = exchange;
    const milliseconds = Math.round(exchange.elapsed() * 10) / 10;
    const what = resolved === undefined ? `${method} ${route}` : resolved.id;
    const endpoint = resolved === undefined ? undefined : `${resolved.api}/${resolved.name}`;
    log.info(`${what} ${status} ${milliseconds}ms`, endpoint === undefined ? { requestId } : { requestId, endpoint });
  };
  const server = createHttpServer(createHandler(sealed, pipeline, served, failureLog(log)));
  const inFlight = countRequests(server);
  try {
    await listen(server, portKey.in(loaded.config) ?? 3000, hostKey.in(loaded.config) ?? '127.0.0.1');
  } catch (error) {
    await stopPlugins(sealed, 0, log);
    throw error;
  }
  const url = urlOf(server);
  announce(log, url, theSigner(), loaded);
  let stopping: Promise<void> | undefined;
  return {
    url,
    signer: theSigner(),
    stop: () => {
      stopping ??= stop(server, inFlight, pipeline, sealed, log);
      return stopping;
    },
  };
}

/** Every stage with its taps, as the service of this config would have them. */
export async function describeService({ file, env }: ServiceOptions): Promise<readonly StageDescription[]> {
  const signer = createSigner(`${'0'.repeat(63)}1`);
  const loaded = await loadConfig({ file, env, builtins: definitions(() => signer) });
  return assemble(loaded, signer, silent).stages;
}

const nothing = () => undefined;
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

function assemble(loaded: LoadedConfig, signer: Signer, log: Log): Sealed {
  const registry = new Registry({
    adapters: publicHooks,
    shapes,
    complain: ({ plugin, stage, requestId, error }) => {
      log.error(`plugin "${plugin}" failed in ${stage}`, { requestId, error: describe(error) });
    },
  });
  const credentials = loaded.plugins.flatMap(({ definition }) => definition.credentials ?? []);
  for (const choice of loaded.plugins) {
    const { definition, budget, config } = choice;
    const services: Services = {
      config: loaded.config,
      endpoints: loaded.endpoints,
      node: signer.address,
      credentials,
      log,
      now: Date.now,
    };
    const plugin = setUp(choice, services, config);
    warnOfSigning(choice, plugin, loaded, log);
    registry.register({
      name: definition.name,
      budget,
      credentials: definition.credentials,
      plugin,
    });
  }
  return registry.seal();
}

function setUp({ definition, source }: PluginChoice, services: Services, config: unknown) {
  try {
    return behaviourOf(definition.setup(services, config));
  } catch (error) {
    throw new RegistrationError(`plugin ${source} cannot be set up: ${messageOf(error)}`);
  }
}

/** What has to wait belongs in `start`: a promise would be a plugin without hooks. */
function behaviourOf(made: Behaviour): Behaviour {
  if (typeof made !== 'object' || made === null || 'then' in made) {
    throw new Error('"setup" must return {hooks, routes, start, stop} at once');
  }
  const odd = Object.keys(made).find((member) => !['hooks', 'routes', 'start', 'stop'].includes(member));
  if (odd !== undefined) throw new Error(`"setup" returned an unknown member "${odd}"`);
  return made;
}

/** The loader knows the hooks of simple plugins and has warned of them; those of others are known only now. */
function warnOfSigning(
  { definition, operator }: PluginChoice,
  { hooks = {} }: Behaviour,
  loaded: LoadedConfig,
  log: Log,
): void {
  const warning = `${definition.name}: ${signingHooks(hooks).join(', ')}`;
  const known = loaded.warnings.some(({ message }) => message === warning);
  if (operator && !known && signingHooks(hooks).length > 0) log.warn(warning);
}

function failureLog(log: Log): Runtime['failed'] {
  return ({ requestId, resolved }, { stage, status, message, reason, fault }) => {
    const fields = { requestId, endpointId: resolved?.id, stage, status, reason };
    if (fault) log.warn(message, fields);
    // A plugin's rejection is an operator's own rule at work.
    else if (stage === 'onHttpRequest') log.info(message, fields);
    else log.debug(message, fields);
  };
}

function createPipeline(sealed: Sealed, log: Log, tracing: boolean): Pipeline {
  return new Pipeline(sealed, {
    now: Date.now,
    failed: failureLog(log),
    trace: tracing
      ? ({ requestId }, stage, milliseconds) =>
          log.debug(`stage ${stage}`, { requestId, milliseconds: Math.round(milliseconds * 100) / 100 })
      : undefined,
  });
}

async function startPlugins(sealed: Sealed): Promise<void> {
  for (const { name, plugin } of sealed.plugins) {
    try {
      const ready = await within(START_TIME, Promise.resolve(plugin.start?.()));
      if (!ready) throw new Error(`is not ready after ${START_TIME} ms`);
    } catch (error) {
      throw new RegistrationError(`plugin "${name}" cannot start: ${messageOf(error)}`);
    }
  }
}

async function stopPlugins(sealed: Sealed, deadline: number, log: Log): Promise<void> {
  const patience = Math.min(Math.max(deadline, 1000), STOP_TIME);
  const stops = sealed.plugins.map(async ({ name, plugin }) => {
    try {
      const stopped = await within(patience, Promise.resolve(plugin.stop?.(patience)));
      if (!stopped) log.error(`plugin "${name}" did not stop in time`);
    } catch (error) {
      log.error(`plugin "${name}" failed to stop`, { error: describe(error) });
    }
  });
  await Promise.all(stops);
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? error.message);
      reject(new Error(`cannot listen on ${host}:${port}: ${why}`));
    });
    server.listen(port, host, resolve);
  });
}

function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function announce(log: Log, url: string, signer: Signer, { endpoints }: LoadedConfig): void {
  log.info(`listening on ${url}`);
  log.info(`signer ${signer.address}`, { backend: signer.backend });
  if (signer.backend !== 'secp256k1')
    log.warn('the native secp256k1 binding is missing: signing is several times slower');
  for (const { api, name, id } of endpoints) log.info(`${api}/${name} ${id}`);
}

/** @returns whether the work ended in time. */
async function within(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  try {
    return await Promise.race([work.then(() => true), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Counts the requests that have arrived and whose response is not out yet. */
function countRequests(server: Server): () => number {
  let count = 0;
  server.on('request', (_, response) => {
    count += 1;
    response.once('close', () => {
      count -= 1;
    });
  });
  return () => count;
}

async function stop(
  server: Server,
  inFlight: () => number,
  pipeline: Pipeline,
  sealed: Sealed,
  log: Log,
): Promise<void> {
  const started = performance.now();
  // A client that pipelines one request after the other would keep its connection open.
  server.prependListener('request', (_, response) => {
    response.shouldKeepAlive = false;
  });
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // To node a connection that has never sent anything is not idle: without requests in flight none has to wait.
  const sweep = setInterval(() => {
    if (inFlight() === 0) server.closeAllConnections();
    else server.closeIdleConnections();
  }, 50);
  const drained = await within(
    DRAIN_TIME,
    closed.then(() => pipeline.drained()),
  );
  clearInterval(sweep);
  if (!drained) log.warn('requests were cut off: they did not finish in time');
  server.closeAllConnections();
  await stopPlugins(sealed, Math.max(DRAIN_TIME - (performance.now() - started), 0), log);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : describe(error);
}
