import type { Cluster, Redis } from 'ioredis';
import { optionalPackage } from '../../lib/process/optional-package.ts';
import type { RedisTarget } from './target.ts';

/** One server. */
export type Server = Redis;

/** What keeps keys: a server, or those of a cluster. */
export interface Client {
  /** Sends a command to the server that keeps its key. */
  readonly commands: Redis | Cluster;
  primaries(): readonly Server[];
  /** Who keeps a key, as far as is known. */
  primaryOf(key: string): Server | undefined;
}

const MISSING = 'settings.state needs a package that is not installed: npm install ioredis@6';

/** Milliseconds in which a connection must be there. */
const CONNECT_TIMEOUT_MS = 3000;
/** Milliseconds in which something must come back while an answer is awaited. */
const SILENCE_TIMEOUT_MS = 1000;
/** Milliseconds between two looks at which servers a cluster has. */
const REFRESH_INTERVAL_MS = 1000;

/** How each server is spoken to: a command is sent at once and once, or rejects as soon as its answer cannot come any more. */
function optionsOf({ username, password, tls }: RedisTarget) {
  return {
    ...{ username, password, ...(tls && { tls }), lazyConnect: true },
    // Nothing needs what version 3 brings, and a server that does not know its HELLO repeats the password.
    protocol: 2 as const,
    // Every server is looked at once it is connected.
    ...{ enableReadyCheck: false, disableClientInfo: true },
    ...{ enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false },
    // Without a bound on silence, a host that vanished would hold the connection for a quarter of an hour.
    ...{ connectTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENCE_TIMEOUT_MS },
  };
}

/**
 * A client that has not connected yet.
 *
 * @param retry gives the milliseconds until the next attempt to connect; `null`: there is none.
 * @param watch gets each server before it is connected.
 * @throws Error with the command that installs the library, when it is missing.
 */
export async function createClient(
  target: RedisTarget,
  retry: () => number | null,
  watch: (server: Server) => void,
): Promise<Client> {
  const library = await optionalPackage(() => import('ioredis'), MISSING);
  const { kind, places, db, tls, sentinel } = target;
  if (kind === 'urls') return clusterClient(library, target, retry, watch);
  const server = new library.Redis({
    ...{ ...optionsOf(target), db, retryStrategy: retry },
    // Who says so is no primary any more: its name may lead to another server by now.
    reconnectOnError: ({ message }) => message.includes('READONLY'),
    ...(sentinel === undefined && places[0]),
    ...(sentinel && {
      ...{ name: sentinel.name, sentinels: [...places], updateSentinels: false },
      ...{ sentinelUsername: sentinel.username, sentinelPassword: sentinel.password },
      ...{ sentinelRetryStrategy: retry, sentinelCommandTimeout: SILENCE_TIMEOUT_MS },
      ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    }),
  });
  watch(server);
  return { commands: server, primaries: () => [server], primaryOf: () => server };
}

function clusterClient(
  { Cluster, Command }: Pick<typeof import('ioredis'), 'Cluster' | 'Command'>,
  target: RedisTarget,
  retry: () => number | null,
  watch: (server: Server) => void,
): Client {
  const cluster = new Cluster([...target.places], {
    ...{ redisOptions: optionsOf(target), lazyConnect: true, enableReadyCheck: false, enableOfflineQueue: false },
    ...{ clusterRetryStrategy: retry, slotsRefreshInterval: REFRESH_INTERVAL_MS },
    // A command that may have been done is not sent again.
    ...{ retryDelayOnFailover: 0, retryDelayOnClusterDown: 0 },
    // The name, which a certificate is for.
    dnsLookup: (host, done) => done(null, host),
  });
  cluster.on('+node', (server: Server) => {
    // The library has it queue commands until it is connected.
    server.options.enableOfflineQueue = false;
    watch(server);
  });
  const primaries = () => cluster.nodes('master');
  return {
    commands: cluster,
    primaries,
    primaryOf: (key) => {
      const [place] = cluster.slots[new Command('get', [key]).getSlot()] ?? [];
      return primaries().find(({ options: { host, port } }) => `${host}:${port}` === place);
    },
  };
}
