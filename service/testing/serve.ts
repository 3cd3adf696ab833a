import { randomBytes } from 'node:crypto';
import type { Server as HttpServer } from 'node:http';
import { join } from 'node:path';
import { loadConfig } from '../../config/index.ts';
import { hint } from '../../lib/suggest.ts';
import type { Parameters } from '../../plugins-sdk/index.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { TestMetrics } from '../../plugins-sdk/testing/metrics.ts';
import type { Serve, ServedPlugin } from '../../plugins-sdk/testing/plugin-harness.ts';
import type { LogLine, ServiceConfig, TestService } from '../../plugins-sdk/testing/service.ts';
import { definitions } from '../index.ts';
import { logTo } from '../log.ts';
import { Server } from '../server.ts';
import { Signers } from '../signers.ts';
import { openState } from '../state-engine.ts';
import { requestOf } from './in-process.ts';

/** Makes a whole service without a port, from a config and a plugin that are objects, not files. */
export const serve: Serve = async (subject, given, { env, folder = process.cwd() }) => {
  const lines: LogLine[] = [];
  const log = logTo((level, message, fields) => void lines.push({ level, message, fields }));
  const source = `./${subject.plugin.name}`;
  const variables = withKey(env);
  const signers = new Signers(variables, log);
  const loaded = await loadConfig({
    file: join(folder, 'config.yaml'),
    tree: configWith(given, source, subject),
    modules: new Map([[source, { plugin: subject.plugin, configSchema: undefined, keys: subject.keys }]]),
    env: variables,
    builtins: definitions(signers),
  });
  for (const { path, message } of loaded.warnings) log.warn(`${path}: ${message}`);
  await signers.open(loaded, variables);
  const stateEngine = openState(loaded, log, subject.now);
  const server = new Server(loaded, { signers, log, stateEngine, now: subject.now });
  const metrics = new TestMetrics();
  server.meters.connect(metrics);
  // Requests do not come through a port.
  await server.start(async () => undefined);
  return {
    ...asked(server.http, loaded.endpoints),
    signer: signers.addressesIn(loaded).node,
    log: lines,
    metrics: () => metrics.read(),
    stop: () => server.stop(),
  };
};

/** Returns the functions with which a test sends requests. */
function asked(
  server: HttpServer,
  endpoints: TestService['endpoints'],
): Pick<TestService, 'endpoints' | 'ask' | 'request'> {
  const idOf = (endpoint: string) => {
    const names = endpoints.map(({ api, name }) => `${api}/${name}`);
    const found = endpoints[names.indexOf(endpoint)];
    if (found === undefined)
      throw new TypeError(`there is no endpoint "${endpoint}"${hint(endpoint, names, 'they are')}`);
    return found.id;
  };
  return {
    endpoints,
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

/** Returns the config with an entry for the plugin under test, after the other plugins. */
function configWith(given: ServiceConfig, source: string, { budget, config: own }: ServedPlugin): ServiceConfig {
  const { settings = {}, server = {} } = given;
  const plugins = isRecord(settings) ? (settings.plugins ?? []) : undefined;
  const entry = { source, timeout: budget === 'none' ? undefined : budget, config: own };
  const config = {
    version: '1.0',
    ...given,
    // Within one process no client needs time to notice the stop. The schema reports the faults of other values.
    server: isRecord(server) ? { drainDelay: 0, ...server } : server,
    settings: Array.isArray(plugins) ? { ...Object(settings), plugins: [...plugins, entry] } : settings,
  };
  return JSON.parse(JSON.stringify(config));
}

function withKey(env: Readonly<Record<string, string | undefined>> = {}): Readonly<Record<string, string | undefined>> {
  const hasOwn = env.SERVICE_PRIVATE_KEY !== undefined || env.SERVICE_MNEMONIC !== undefined;
  return hasOwn ? env : { ...env, SERVICE_PRIVATE_KEY: randomBytes(32).toString('hex') };
}
