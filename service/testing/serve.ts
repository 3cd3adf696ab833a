import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { type LoadedConfig, loadConfig } from '../../config/index.ts';
import { Connections, createHttpServer } from '../../http/limits.ts';
import { hint } from '../../lib/text/suggest.ts';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { Parameters } from '../../plugins-sdk/index.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import type { Phase } from '../../plugins-sdk/services.ts';
import { Debts } from '../../plugins-sdk/state/debts.ts';
import { TestMetrics } from '../../plugins-sdk/testing/metrics.ts';
import type { LogLine, Serve, ServedPlugin, ServiceConfig, TestService } from '../../plugins-sdk/testing/service.ts';
import { DRAIN_TIME_MS } from '../drain.ts';
import { Generation } from '../generation.ts';
import { definitions } from '../index.ts';
import { MeterRegistry } from '../meter-registry.ts';
import { Signers } from '../signers.ts';
import { openState } from '../state-engine.ts';
import { openIn, requestOf } from './in-process.ts';

/** A whole service of a config that is no file, with a plugin that is no module, and with no port. */
export const serve: Serve = async (subject, given, { env, folder = process.cwd() }) => {
  const lines: LogLine[] = [];
  const log = logInto(lines, subject);
  const source = `./${subject.plugin.name}`;
  const variables = withKey(env);
  const file = join(folder, 'config.yaml');
  const signers = Signers.beside(file, variables, log);
  const loaded = await loadConfig({
    file,
    tree: configWith(given, source, subject),
    modules: new Map([[source, { plugin: subject.plugin, configSchema: undefined, keys: subject.keys }]]),
    env: variables,
    builtins: definitions(signers),
  });
  for (const { path, message } of loaded.warnings) log.warn(`${path}: ${message}`);
  await signers.open(loaded, variables);
  const metrics = new TestMetrics();
  const { server, node, stop } = await startIn(folder, loaded, { signers, log, now: subject.now, metrics });
  let stopped: Promise<void> | undefined;
  return {
    ...asked(server, loaded.endpoints),
    signer: node,
    log: lines,
    metrics: () => metrics.read(),
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
};

/** What a test reads, and what it moves. */
interface Instruments {
  readonly signers: Signers;
  readonly log: Log;
  readonly now: () => number;
  readonly metrics: TestMetrics;
}

/** Starts the plugins of a config, and serves by them. */
async function startIn(folder: string, loaded: LoadedConfig, { signers, log, now, metrics }: Instruments) {
  const stateEngine = openState(loaded, { log, now, path: (relative) => join(folder, relative) });
  const addresses = signers.addressesIn(loaded);
  const meters = new MeterRegistry(() => undefined);
  meters.connect(metrics);
  let phase: Phase = 'starting';
  const surroundings = {
    ...addresses,
    ...{ log, stateEngine, now, meters, debts: new Debts() },
    lastReload: () => ({ succeeded: true, inForceSince: now() / 1000, generation: 1 }),
    status: () => generation.status.read(),
    phase: () => phase,
  };
  const generation: Generation = new Generation(loaded, surroundings, () => signers.release(loaded.config));
  const letGo = async () => {
    await generation.letGo([]);
    await Promise.all([stateEngine?.close(), signers.close()]);
  };
  try {
    await stateEngine?.start();
    await generation.start();
  } catch (error) {
    await letGo();
    throw error;
  }
  generation.commit();
  phase = 'serving';
  const server = createHttpServer();
  const connections = new Connections(server, (request, response) => generation.handle(request, response));
  const stop = async () => {
    phase = 'stopping';
    generation.endStreams();
    await withTimeout(DRAIN_TIME_MS, generation.drained());
    generation.tell();
    connections.closeAll();
    await generation.stop(DRAIN_TIME_MS);
    await letGo();
    server.close();
  };
  return { server, node: addresses.node, stop };
}

/** What asks it. */
function asked(
  server: Server,
  endpoints: TestService['endpoints'],
): Pick<TestService, 'endpoints' | 'ask' | 'request' | 'open'> {
  const idOf = (endpoint: string) => {
    const names = endpoints.map(({ api, name }) => `${api}/${name}`);
    const found = endpoints[names.indexOf(endpoint)];
    if (found === undefined)
      throw new TypeError(`there is no endpoint "${endpoint}"${hint(endpoint, names, 'they are')}`);
    return found.id;
  };
  return {
    endpoints,
    open: (request) => openIn(server, request),
    request: (request) => requestOf(server, request),
    ask: async (endpoint, parameters: Parameters = {}, { headers, ...client } = {}) =>
      requestOf(server, {
        ...client,
        method: 'POST',
        path: `/endpoints/${idOf(endpoint)}`,
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ parameters }),
      }),
  };
}

/** The config with an entry for the plugin under test, behind those that it has. */
function configWith(given: ServiceConfig, source: string, { budget, config: own }: ServedPlugin): ServiceConfig {
  const config: unknown = JSON.parse(JSON.stringify({ version: '1.0', ...given }));
  if (!isRecord(config)) throw new TypeError('harness.serve takes a config, an object');
  const { settings = {} } = config;
  const { plugins = [] } = isRecord(settings) ? settings : {};
  // What is wrong with them is for the schema to say.
  if (!isRecord(settings) || !Array.isArray(plugins)) return config;
  const entry = { source, timeout: budget === 'none' ? undefined : budget, config: own };
  return { ...config, settings: { ...settings, plugins: [...plugins, JSON.parse(JSON.stringify(entry))] } };
}

function withKey(env: Readonly<Record<string, string | undefined>> = {}): Readonly<Record<string, string | undefined>> {
  const hasOwn = env.SERVICE_PRIVATE_KEY !== undefined || env.SERVICE_MNEMONIC !== undefined;
  return hasOwn ? env : { ...env, SERVICE_PRIVATE_KEY: randomBytes(32).toString('hex') };
}

/** Keeps the lines; those against the plugin under test are complaints, too, but for the sums of its budget. */
function logInto(lines: LogLine[], { name, complain }: ServedPlugin): Log {
  const isAgainst = (message: string) => message.toLowerCase().includes(`plugin "${name.toLowerCase()}"`);
  const at =
    (level: keyof Log): Log['info'] =>
    (message, fields = {}) => {
      lines.push({ level, message, fields });
      const isNotice = / can change what gets signed /.test(message) || 'used' in fields;
      if (!/^(?:warn|error)$/.test(level) || !isAgainst(message) || isNotice) return;
      const { stage = 'serve', requestId = '', error, detail = error } = fields;
      const more = detail === undefined ? '' : `: ${String(detail)}`;
      complain(String(stage), message + more, String(requestId));
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
