import type { IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';

/**
 * What Node.js does not offer and has had under the same names from version 20 to 24. `test/http/cut.test.ts` fails on a version
 * that has changed them.
 */

/** The system's side of a socket, or of a server that listens. */
interface Handle {
  readonly fd: number;
  reading: boolean;
  readStart(): void;
  readStop(): void;
  /** Bytes that were written and that the system has not taken. */
  readonly writeQueueSize: number;
  listen(length: number): void;
}

function handleOf(of: Socket | Server): Partial<Handle> | undefined {
  return Reflect.get(of, '_handle') ?? undefined;
}

/** Reads nothing more from the system, not even in the turn of the event loop in which it has something. */
export function stopReading(socket: Socket): void {
  const handle = handleOf(socket);
  if (!handle?.reading) return;
  handle.reading = false;
  handle.readStop?.();
}

/** Undoes {@link stopReading}, unless the socket was paused meanwhile: then its `resume` does. */
export function startReading(socket: Socket): void {
  const handle = handleOf(socket);
  if (handle === undefined || handle.reading || socket.readableFlowing !== true) return;
  handle.reading = true;
  handle.readStart?.();
}

/** Node counts a whole write as unsent until its end is out; this shows progress within it. */
export const queuedOf = (socket: Socket): number => handleOf(socket)?.writeQueueSize ?? 0;

export const fdOf = (server: Server): number | undefined => handleOf(server)?.fd;

/**
 * Has the system let so many connections wait, and one. Whoever comes beyond asks again after a second (RFC 6298), and is refused when
 * the server is closed by then. Without effect where the runtime does not let it be done.
 */
export const setQueue = (server: Server, length: number): void => handleOf(server)?.listen?.(length);

/**
 * Has node ask before it takes a request, at the end of its headers. One that may not be taken ends node's reading of the
 * connection within the chunk. The server emits `upgrade` with the request and all bytes behind its headers.
 */
export function askBeforeEach(socket: Socket, mayTake: (request: IncomingMessage) => boolean): void {
  const parser: object | null | undefined = Reflect.get(socket, 'parser');
  if (!parser) return;
  const take: (request: IncomingMessage, keepAlive: boolean) => number = Reflect.get(parser, 'onIncoming');
  Reflect.set(parser, 'onIncoming', (request: IncomingMessage, keepAlive: boolean) => {
    if (!mayTake(request)) Reflect.set(request, 'upgrade', true);
    return take(request, keepAlive);
  });
}
