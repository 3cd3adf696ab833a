import { builtins, innermost } from '../builtins/index.ts';
import { type LoadedConfig, type LocatedFinding, loadConfig, readSettings } from '../config/index.ts';
import { proxiesInForce } from '../lib/http/client/proxies.ts';
import { listen, urlOf } from '../lib/http/listen.ts';
import type { Definition } from '../plugins-sdk/define.ts';
import { type Log, silentLog } from '../plugins-sdk/log.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import type { Signing } from '../plugins-sdk/signing/signers.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { signerAddressOf } from './assemble.ts';
import { type AskedOperation, askControl, controlAt, controlPaths, runOperation } from './control.ts';
import { addressOf, listener } from './listener.ts';
import type { ServiceLog } from './log.ts';
import type { ReadVariables } from './reload.ts';
import { announce, warnOfPublicKeys } from './report.ts';
import { type RequestLogSettings, requestLog } from './request-log.ts';
import { Server } from './server.ts';
import type { StateClient } from './shared-state.ts';
import { Signers, throwAwaySigning } from './signers.ts';
import { checkTogether, openState } from './state-engine.ts';
import { packageVersion } from './surroundings.ts';
import type { WorkerLink } from './workers/link.ts';

/** The config file of a service and its variables. */
export interface ServiceOptions {
  /** Absolute path of the config file. */
  readonly file: string;
  /** Environment variables for `${VAR}` and the signer. */
  readonly env: Environment;
}

/** A running service. */
export type Service = Awaited<ReturnType<typeof startService>>;

/**
 * Returns the definitions of a service's own plugins, which come before an operator's.
 * @param around plugins placed just outside the plugin that calls the upstream.
 */
export function definitions(
  signing?: Signing,
  requests: RequestLogSettings = { isJson: false, isTraced: false },
  around: readonly Definition[] = [],
): Definition[] {
  const plugins = builtins(signing);
  plugins.splice(plugins.indexOf(innermost), 0, ...around);
  return [listener(), requestLog(requests), ...plugins];
}

interface StartOptions extends ServiceOptions {
  readonly log: ServiceLog;
  /** The log for what the config is; by default `log`. */
  readonly news?: Log;
  readonly link?: WorkerLink;
  /** Called once the service listens, so that the start does not wait for a thread, or before an operator's plugin is loaded. */
  readonly startWatchdog?: () => void;
}

/**
 * Loads the config, derives the signer, registers the plugins, starts them and listens.
 * @throws ConfigErrors and other errors whose message is one clear line per fault.
 */
export async function startService(options: StartOptions) {
  const { file, env, log, news = log, link, startWatchdog } = options;
  const signers = new Signers(env, log);
  const load = async (variables: Environment, told: Log): Promise<LoadedConfig> => {
    const isTraced = /^(?:debug|trace)$/.test(variables.LOG_LEVEL ?? '');
    const own = definitions(signers, { isJson: log.format === 'json', isTraced });
    // Checked first, so that the error for an unusable proxy does not name the first plugin that reads it.
    proxiesInForce();
    const loaded = await loadConfig({ file, env: variables, builtins: own, beforePlugin: startWatchdog });
    const together: readonly LocatedFinding[] = link === undefined ? [] : checkTogether(loaded);
    for (const { path, message, where } of [...loaded.warnings, ...together])
      told.warn(path === '' ? message : `${path}: ${message}`, where === undefined ? {} : { where });
    await signers.open(loaded, variables);
    return loaded;
  };
  const loaded = await load(env, news);
  link?.check(loaded, signers);
  warnOfPublicKeys(news, loaded, signers);
  warnOfVariables(env, news);
  news.info(`signed-data-proxy ${packageVersion()}`, { config: file });
  const stateEngine = openState(loaded, log);
  const service = new Server(loaded, { signers, log, stateEngine, workers: link, now: Date.now });
  const [socket] = controlPaths(file);
  const control = controlAt(socket, log, () => service.plugins.operations);
  await service.start(async () => {
    await listen(service.http, addressOf(loaded.config));
    await control.open();
  });
  const url = urlOf(service.http);
  announce(news, url, loaded, signers, stateEngine);
  // Otherwise these lines would wait for more of them.
  log.flush?.();
  startWatchdog?.();
  return {
    url,
    /** The signer of its answers at the start. */
    signer: { address: signerAddressOf(loaded) },
    /**
     * Reads the config file again and serves by it. Requests under way end by the config that they began with.
     * On any error everything stays as it is. The log says what happened.
     * Reloads run one after the other. Calls that come while one waits to begin share it; the first of them reads the variables.
     * @param variables reads the environment variables when the reload begins; the signer stays.
     * @param told the log for what the new config changes; by default the log of the service.
     * @returns whether the new config is in force.
     */
    reload: (variables: ReadVariables, told: Log = log): Promise<boolean> =>
      service.reload(load, variables, told).finally(() => control.open()),
    /** Stops accepting requests, lets work in flight finish within bounds, then closes everything. */
    stop: (): Promise<void> => service.stop().finally(() => control.close()),
  };
}

/**
 * Runs an operation in the running service of a config. Without one, runs it here on the state in `settings.state`.
 * While a service listens, the config file need only be YAML. Otherwise it must be valid, and of its variables only those
 * in `settings.state` must be set.
 * @throws Error when no service listens and there is no `settings.state`, and for faults of the operation.
 */
export async function operate({ file, env }: ServiceOptions, asked: AskedOperation, log: Log) {
  const settings = await readSettings(file, env, builtins());
  const paths = controlPaths(file);
  for (const path of paths) {
    const answered = await askControl(path, asked);
    if (answered !== undefined) return answered;
  }
  if (!isRecord(settings.state))
    throw new Error(`without settings.state only the running service knows, and none listens at ${paths.join(' or ')}`);
  const needed = 'settings.state';
  const loaded = await loadConfig({ file, env, builtins: definitions(throwAwaySigning()), allowUnset: true, needed });
  const state = openState(loaded, log);
  try {
    await state?.start();
    return await runOperation(idleServer(loaded, log, state).plugins.operations, asked);
  } finally {
    await state?.close();
  }
}

function warnOfVariables(env: Environment, log: Log): void {
  if (env.SERVICE_MNEMONIC && env.SERVICE_PRIVATE_KEY)
    log.warn('SERVICE_MNEMONIC and SERVICE_PRIVATE_KEY are both set: the mnemonic wins');
  // Node and OpenTelemetry's library read these from the process, not from `env`.
  for (const name of ['NODE_EXTRA_CA_CERTS', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'])
    if (env[name] && !process.env[name]) log.warn(`${name} counts only as a variable of the process, not in a file`);
}

/** Returns the stages' taps, routes and observers of a service with this config, and the names of isolated plugins. */
export async function listPlugins({ file, env }: ServiceOptions) {
  const loaded = await loadConfig({ file, env, builtins: definitions(throwAwaySigning()) });
  const isolated = new Set(loaded.plugins.flatMap((choice) => (choice.isolated ? [choice.definition.name] : [])));
  return { ...idleServer(loaded, silentLog).plugins, isolated };
}

/** Makes a server without a port, for commands that ask its plugins. */
export function idleServer(loaded: LoadedConfig, log: Log, stateEngine?: StateClient): Server {
  return new Server(loaded, { log, stateEngine, now: Date.now, signers: new Signers({}, log) });
}
