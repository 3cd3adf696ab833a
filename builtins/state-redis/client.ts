import type { Cluster, Redis } from 'ioredis';
import { optionalPackage } from '../../lib/process/packages.ts';
import { type Scripted, scripts } from './scripts.ts';
import type { RedisTarget } from './target.ts';

/** One server. */
export type Server = Redis;

/** A client of one server, or of those of a cluster. */
export interface Client {
  /** Sends a command to the server that keeps its key. */
  readonly commands: (Redis | Cluster) & Scripted;
  primaries(): readonly Server[];
  /** Returns the server that keeps a key, as far as is known. */
  primaryOf(key: string): Server | undefined;
}

const MISSING = 'settings.state needs a package that is not installed: npm install ioredis@6';

/** Timeout of a connection attempt, in milliseconds. */
const CONNECT_TIMEOUT_MS = 3000;
/** Most milliseconds of silence while an answer is awaited. */
const SILENCE_TIMEOUT_MS = 1000;
/** Milliseconds between two queries for the servers of a cluster. */
const REFRESH_INTERVAL_MS = 1000;

/** Returns the options for each server. A command is sent at once and once; it rejects as soon as no answer can come any more. */
function optionsOf({ username, password, tls }: RedisTarget) {
  return {
    ...{ username, password, ...(tls && { tls }), lazyConnect: true },
    // Version 3 of the protocol is not needed, and a server that does not know its HELLO repeats the password in its error.
    protocol: 2 as const,
    // `Connection` examines every server itself once it is connected.
    ...{ enableReadyCheck: false, disableClientInfo: true },
    ...{ enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false },
    // Without a bound on silence, the connection to a vanished host would last for a quarter of an hour.
    ...{ connectTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENCE_TIMEOUT_MS },
  };
}

/**
 * Creates a client, which is not connected yet.
 *
 * @param retry returns the milliseconds until the next attempt to connect, or `null` for none.
 * @param watch called with each server before it is connected.
 * @throws Error with the command that installs the library, if it is missing.
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
    ...{ ...optionsOf(target), db, retryStrategy: retry, scripts },
    // A server that answers READONLY has ceased to be the primary: its name may belong to another server by then.
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
  return { commands: server as Redis & Scripted, primaries: () => [server], primaryOf: () => server };
}

function clusterClient(
  { Cluster, Command }: Pick<typeof import('ioredis'), 'Cluster' | 'Command'>,
  target: RedisTarget,
  retry: () => number | null,
  watch: (server: Server) => void,
): Client {
  const cluster = new Cluster([...target.places], {
    ...{ redisOptions: optionsOf(target), lazyConnect: true, enableReadyCheck: false, enableOfflineQueue: false },
    ...{ clusterRetryStrategy: retry, slotsRefreshInterval: REFRESH_INTERVAL_MS, scripts },
    // A command that may have been carried out is not sent again.
    ...{ retryDelayOnFailover: 0, retryDelayOnClusterDown: 0 },
    // Connects by name, since certificates are for names.
    dnsLookup: (host, done) => done(null, host),
  });
  cluster.on('+node', (server: Server) => {
    // By the library's default the server would queue commands until it is connected.
    server.options.enableOfflineQueue = false;
    watch(server);
  });
  const primaries = () => cluster.nodes('master');
  return {
    commands: cluster as Cluster & Scripted,
    primaries,
    primaryOf: (key) => {
      const [place] = cluster.slots[new Command('get', [key]).getSlot()] ?? [];
      return primaries().find(({ options: { host, port } }) => `${host}:${port}` === place);
    },
  };
}
