import type { Socket } from 'node:net';
import { startReading } from './socket-internals.ts';

/** Bytes that are read behind the last answer, so that its client gets it before the connection closes. */
const DISCARDED = 64 * 1024;
/** Milliseconds in which the client can take the last answer. */
const LINGER_MS = 1000;

/**
 * Has a connection read on for a while when the last answer is out: the rest of a body that nobody wants, and further requests. Closed
 * with bytes unread, it would be reset, and its client might lose an answer before it has read it (RFC 9112, section 9.6).
 */
export function linger(socket: Socket): void {
  // What node calls behind an answer with `Connection: close`.
  socket.destroySoon = () => {
    const most = socket.bytesRead + DISCARDED;
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(timer));
    // Bytes of the connection: extensions of chunks are no part of a body.
    socket.on('data', () => {
      // Node resumes it for what it has read ahead.
      if (socket.bytesRead > most) socket.on('resume', () => socket.pause()).pause();
    });
    socket.end();
    socket.resume();
    // Node does not start it where it has stopped it itself, for a body that nobody reads.
    startReading(socket);
  };
}
