import type { Connection } from './connection.ts';

/**
 * The connection that must go when too many bytes of answers wait.
 * @param slow those whose client leaves an answer unread; in front the one that has made no progress for longest.
 * @param holding all with answers that are not out, behind unfinished ones too.
 */
export function victimOf(slow: ReadonlySet<Connection>, holding: ReadonlySet<Connection>): Connection | undefined {
  // Where every client reads, the one that waits with the most behind it.
  return firstOfGreediest(slow, ({ unreadBytes }) => unreadBytes) ?? mostOf(holding);
}

/** The first of those whose address has the most of something: who comes with many connections pays for them. */
export function firstOfGreediest(
  connections: ReadonlySet<Connection>,
  sizeOf: (connection: Connection) => number,
): Connection | undefined {
  const byAddress = new Map<string, number>();
  for (const connection of connections) {
    byAddress.set(connection.address, (byAddress.get(connection.address) ?? 0) + sizeOf(connection));
  }
  const most = Math.max(...byAddress.values());
  for (const connection of connections) if (byAddress.get(connection.address) === most) return connection;
  return undefined;
}

function mostOf(connections: Iterable<Connection>): Connection | undefined {
  let most: Connection | undefined;
  for (const connection of connections) {
    if (most === undefined || connection.unreadBytes > most.unreadBytes) most = connection;
  }
  return most;
}
