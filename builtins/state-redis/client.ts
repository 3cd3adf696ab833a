import type { Redis as Client } from 'ioredis';
import { optionalPackage } from '../../lib/process/optional-package.ts';
import type { RedisTarget } from './target.ts';

export type { Client };

const MISSING = 'settings.state needs a package that is not installed: npm install ioredis@6';

/** Milliseconds in which a connection must be there, and in which something must come back while an answer is awaited. */
const SILENCE_TIMEOUT_MS = 3000;
/** Milliseconds of silence after which the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 10_000;
/** Milliseconds for the server to end a connection from its side. */
const DISCONNECT_TIMEOUT_MS = 500;

/** Whether a reply says that the server is no primary any more: then its name may lead to another one by now. */
function isReadOnly({ message }: Error): boolean {
  return message.includes('READONLY');
}

/**
 * A client that has not connected yet. A command is sent at once and once, or rejects; it rejects as soon as its answer cannot
 * come any more.
 *
 * @param retry gives the milliseconds until the next attempt to connect; `null`: there is none.
 * @throws Error with the command that installs the library, when it is missing.
 */
export async function createClient(
  { host, port, db, username, password, tls }: RedisTarget,
  retry: () => number | null,
): Promise<Client> {
  const { Redis } = await optionalPackage(() => import('ioredis'), MISSING);
  return new Redis({
    ...{ host, port, db, lazyConnect: true, retryStrategy: retry, reconnectOnError: isReadOnly },
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
    // Nothing needs what version 3 brings, and a server that does not know its HELLO repeats the password.
    protocol: 2,
    // Whoever opens the connection looks at the server.
    ...{ enableReadyCheck: false, disableClientInfo: true },
    ...{ enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false },
    // Without a bound on silence, a host that vanished would hold the connection for a quarter of an hour.
    ...{
      connectTimeout: SILENCE_TIMEOUT_MS,
      socketTimeout: SILENCE_TIMEOUT_MS,
      keepAlive: KEEP_ALIVE_MS,
      disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    },
  });
}
