import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * What Node.js does not offer and has had under the same names from version 20 to 24: `test/http/cut.test.ts` fails on a version
 * that has changed them.
 */

/** The system's side of a socket. */
interface Handle {
  reading: boolean;
  readStart(): void;
  readStop(): void;
  /** Bytes that were written and that the system has not taken. */
  readonly writeQueueSize: number;
}

function handleOf(socket: Socket): Handle | undefined {
  const handle: Handle | null | undefined = Reflect.get(socket, '_handle');
  return handle ?? undefined;
}

/** Reads nothing more from the system, not even in the turn of the event loop in which it has something. */
export function stopReading(socket: Socket): void {
  const handle = handleOf(socket);
  if (handle === undefined || !handle.reading) return;
  handle.reading = false;
  handle.readStop();
}

/** Undoes {@link stopReading}, unless the socket was paused meanwhile: then its `resume` does. */
export function startReading(socket: Socket): void {
  const handle = handleOf(socket);
  if (handle === undefined || handle.reading || socket.readableFlowing !== true) return;
  handle.reading = true;
  handle.readStart();
}

/** Node counts a whole write as unsent until its end is out; this shows progress within it. */
export function queuedOf(socket: Socket): number {
  return handleOf(socket)?.writeQueueSize ?? 0;
}

/**
 * Has node ask before it takes a request, at the end of its headers. One that may not be taken ends node's reading of the
 * connection within the chunk: the server emits `upgrade` with the request and all bytes behind its headers.
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
