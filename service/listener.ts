import type { Address } from '../lib/http/listen.ts';
import { checkHost, warning } from '../plugins-sdk/checks.ts';
import { millisecondsSchema } from '../plugins-sdk/config.ts';
import { optionalKey, Type } from '../plugins-sdk/config-key.ts';
import type { ConnectionLimits } from '../plugins-sdk/connection-limits.ts';
import { type Definition, definePlugin, type Finding } from '../plugins-sdk/define.ts';
import type { Meters } from '../plugins-sdk/meters.ts';
import { descriptorLimit } from './descriptors.ts';
import { MOST_WORKERS } from './workers/count.ts';

const portKey = optionalKey(
  'server',
  'port',
  Type.Integer({ minimum: 0, maximum: 65_535, description: 'Port; 0 takes a free one; default 3000' }),
);
const hostKey = optionalKey(
  'server',
  'host',
  Type.String({ minLength: 1, description: 'Address to listen on; default 127.0.0.1' }),
);
const maxKey = optionalKey(
  'server',
  'connections.max',
  Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description:
      'Connections of clients; default 16384, and at most three quarters of the file descriptors that are left',
  }),
);
const perAddressKey = optionalKey(
  'server',
  'connections.perAddress',
  Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: 'Connections of one client address; default a quarter of max, all of it with trustForwardedFor',
  }),
);
const drainDelayKey = optionalKey(
  'server',
  'drainDelay',
  millisecondsSchema(
    'Milliseconds, at most 10m, for which requests are still accepted after SIGTERM, with /ready 503; default 250',
    { minimum: 0, maximum: 600_000 },
  ),
);
const workersKey = optionalKey(
  'server',
  'workers',
  Type.Integer({ minimum: 1, maximum: MOST_WORKERS, description: 'Processes that serve together; default 1' }),
);
/** Read only. */
const callsKey = optionalKey('settings', 'maxConcurrentApiCalls', Type.Number());

type Config = Readonly<Record<string, unknown>>;

const DEFAULT_MAX = 16_384;
const DEFAULT_CALLS = 50;
/** With fewer connections than this, operators are warned. */
const FEW = 64;
/** File descriptors for what is neither a client's nor an upstream's: files, the log, metrics. */
const OWN_DESCRIPTORS = 64;

/** File descriptors that upstream calls and the process itself leave for clients. */
function descriptorsForClients(config: Config): number {
  return descriptorLimit() - OWN_DESCRIPTORS - (callsKey.in(config) ?? DEFAULT_CALLS);
}

/** How many connections a config allows. @param plugins may know of a proxy in front. */
export function connectionLimitsOf(config: Config, plugins: readonly Definition[]): ConnectionLimits {
  const most = Math.max(Math.floor((descriptorsForClients(config) * 3) / 4), 1);
  const max = maxKey.in(config) ?? Math.min(DEFAULT_MAX, most);
  const isBehindProxy = plugins.some(({ behindProxy }) => behindProxy?.(config));
  // Behind a proxy all connections have one address.
  const share = isBehindProxy ? max : Math.max(Math.floor(max / 4), 1);
  return { max, perAddress: perAddressKey.in(config) ?? share };
}

/** Milliseconds for which a service that was told to stop still accepts requests. */
export function drainDelayOf(config: Config): number {
  return drainDelayKey.in(config) ?? 250;
}

function checkMax(config: Config, plugins: readonly Definition[]): Finding[] {
  const max = maxKey.in(config);
  const left = Math.max(descriptorsForClients(config), 0);
  if (max !== undefined) {
    const message = `${max} connections are more than the file descriptors of the process allow (${left}): raise its limit (ulimit -n)`;
    return max > left ? [warning('server.connections.max', message)] : [];
  }
  const { max: most } = connectionLimitsOf(config, plugins);
  if (most >= FEW) return [];
  const calls = `settings.maxConcurrentApiCalls (${callsKey.in(config) ?? DEFAULT_CALLS})`;
  const message = `the process may have ${descriptorLimit()} file descriptors (ulimit -n), and ${calls} leaves them for ${most} connections of clients`;
  return [warning('server.connections.max', message)];
}

function checkShare(config: Config, plugins: readonly Definition[]): Finding[] {
  const share = perAddressKey.in(config);
  const { max } = connectionLimitsOf(config, plugins);
  if (share === undefined || share <= max) return [];
  return [warning('server.connections.perAddress', `is never reached: all addresses together may have ${max}`)];
}

/** The service's own keys are contributed like a plugin's. @param plugins the others. @param measure asks for instruments of its own. */
export function listener(
  plugins: readonly Definition[],
  measure: (meters: Meters) => void = () => undefined,
): Definition {
  return definePlugin({
    name: 'listener',
    required: true,
    keys: [portKey, hostKey, maxKey, perAddressKey, drainDelayKey, workersKey],
    check: ({ config }) => [
      ...checkHost('server.host', hostKey.in(config)),
      ...checkMax(config, plugins),
      ...checkShare(config, plugins),
    ],
    setup: ({ meters }) => {
      measure(meters);
      return {};
    },
  });
}

/** The address that a config asks for. */
export function addressOf(config: Config): Address {
  return { port: portKey.in(config) ?? 3000, host: hostKey.in(config) ?? '127.0.0.1', path: 'server' };
}

/** How many processes a config asks for. */
export function workersOf(config: Config): number {
  return workersKey.in(config) ?? 1;
}
