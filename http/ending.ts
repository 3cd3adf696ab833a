import type { Socket } from 'node:net';
import { startReading } from './socket-internals.ts';

/** Bytes that are read behind the last answer, so that its client gets it before the connection closes. */
const DISCARDED = 64 * 1024;
/** Milliseconds in which the client can take the last answer. */
const LINGER_MS = 1000;

/**
 * Has a connection read on for a while when the last answer is out: the rest of an unwanted body, and further requests. A connection
 * that is closed with bytes unread is reset, and its client might lose the answer (RFC 9112, section 9.6).
 */
export function linger(socket: Socket): void {
  // Node calls this behind an answer with `Connection: close`.
  socket.destroySoon = () => {
    const most = socket.bytesRead + DISCARDED;
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(timer));
    // Bytes of the connection: extensions of chunks are no part of a body.
    socket.on('data', () => {
      // Node would resume the socket for what it has read ahead.
      if (socket.bytesRead > most) socket.on('resume', () => socket.pause()).pause();
    });
    socket.end();
    socket.resume();
    // Node may have stopped reading itself, for a body that nobody reads, and does not start again.
    startReading(socket);
  };
}
