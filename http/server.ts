import { createServer, type Server } from 'node:http';
import { MOST_HEADERS } from './bare-refusals.ts';

/** Milliseconds. */
const DEADLINES = {
  /** For the headers of a request. */
  headersTimeout: 10_000,
  /** For a whole request. */
  requestTimeout: 30_000,
  /**
   * For the next request of a connection. Longer than nginx and AWS keep one (60 seconds): whoever closes first must be the
   * client, or a request that is on its way meets a closed door.
   */
  keepAliveTimeout: 75_000,
  /** Between two looks at the other deadlines. */
  connectionsCheckingInterval: 1000,
};

/** A server with deadlines; what it answers, and to how many, is for whoever gets its requests. */
export function createHttpServer(): Server {
  // Clients may end their side once they have sent a request, and still get the answer (RFC 9112, section 9.6).
  // A missing host is refused with several of them, within the bounds of its connection.
  const settings = {
    httpAllowHalfOpen: true,
    // One more than is let in: node drops what is beyond, the length of the body perhaps.
    maxHeadersCount: MOST_HEADERS + 1,
  };
  return Object.assign(createServer({ ...DEADLINES, requireHostHeader: false }), settings);
}
