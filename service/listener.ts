import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { ListenAddress } from '../lib/http/listen.ts';
import { atMostEvery } from '../lib/time.ts';
import { checkHost } from '../plugins-sdk/checks.ts';
import { millisecondsSchema } from '../plugins-sdk/config.ts';
import { optionalKey, Type } from '../plugins-sdk/config-key.ts';
import { type ConnectionLimit, type ConnectionLimits, limitConnections } from '../plugins-sdk/connection-limits.ts';
import { type Definition, definePlugin } from '../plugins-sdk/define.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { MOST_WORKERS } from './workers/count.ts';

function wholeKey(path: string, [minimum, maximum]: readonly [number, number], description: string) {
  return optionalKey('server', path, Type.Integer({ minimum, maximum, description }));
}

const CONNECTIONS = [1, 1_000_000] as const;
const portKey = wholeKey('port', [0, 65_535], 'Port; 0 takes a free one; default 3000');
const hostKey = optionalKey(
  'server',
  'host',
  Type.String({ minLength: 1, description: 'Address to listen on; default 127.0.0.1' }),
);
const maxKey = wholeKey(
  'connections.max',
  CONNECTIONS,
  'Open connections; default 16384, and at most half of the file descriptors',
);
const perAddressKey = wholeKey(
  'connections.perAddress',
  CONNECTIONS,
  'Connections per address; default a quarter of max, all of it with trustForwardedFor',
);
const drainDelayKey = optionalKey(
  'server',
  'drainDelay',
  millisecondsSchema('How long requests are accepted after SIGTERM, with /ready 503; at most 10m; default 250ms', {
    minimum: 0,
    maximum: 600_000,
  }),
);
const workersKey = wholeKey('workers', [1, MOST_WORKERS], 'Processes that serve together; default 1');
type Config = Readonly<Record<string, unknown>>;

const DEFAULT_MAX = 16_384;
/** Milliseconds between two log lines on refused connections. */
const QUIET_MS = 60_000;

/** The file descriptors that the process may open, sockets among them; infinite where the system does not say. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Returns how many connections a config allows. @param plugins some know whether a proxy is in front. */
export function connectionLimitsOf(config: Config, plugins: readonly Definition[]): ConnectionLimits {
  // The other half is for calls of upstreams, which need descriptors, too.
  const max = maxKey.in(config) ?? Math.min(DEFAULT_MAX, Math.max(Math.floor(descriptorLimit() / 2), 1));
  const isBehindProxy = plugins.some(({ behindProxy }) => behindProxy?.(config));
  // Behind a proxy all connections have one address.
  const share = isBehindProxy ? max : Math.max(Math.floor(max / 4), 1);
  return { max, perAddress: perAddressKey.in(config) ?? share };
}

/** Closes connections beyond the limits, and logs at most one line a minute for each limit. */
export function limitClients(server: Server, limits: () => ConnectionLimits, log: Log): void {
  const tell = (limit: ConnectionLimit) =>
    atMostEvery(QUIET_MS, () =>
      log.warn(`connections refused: server.connections.${limit} is reached`, { limit: limits()[limit] }),
    );
  const refused = { max: tell('max'), perAddress: tell('perAddress') };
  limitConnections(server, limits, (limit) => refused[limit]());
}

/** Returns the milliseconds for which a service still accepts requests after it was told to stop. */
export function drainDelayOf(config: Config): number {
  return drainDelayKey.in(config) ?? 250;
}

/** Makes the plugin that owns the service's own config keys. */
export function listener(): Definition {
  return definePlugin({
    name: 'listener',
    required: true,
    keys: [portKey, hostKey, maxKey, perAddressKey, drainDelayKey, workersKey],
    changesAnswers: false,
    check: ({ config }) => checkHost('server.host', hostKey.in(config)),
    setup: () => ({}),
  });
}

/** Returns the address at which a service with this config listens. */
export function addressOf(config: Config): ListenAddress {
  return { port: portKey.in(config) ?? 3000, host: hostKey.in(config) ?? '127.0.0.1', path: 'server' };
}

/** Returns the number of worker processes in a config. */
export function workersOf(config: Config): number {
  return workersKey.in(config) ?? 1;
}
