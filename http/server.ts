import { createServer, type IncomingMessage, type Server } from 'node:http';

/** Headers of a request; with more of them, it costs more to take a request apart than to answer it. */
const MOST_HEADERS = 1000;

/** Milliseconds. */
const DEADLINES = {
  /** For the headers of a request. */
  headersTimeout: 10_000,
  /** For a whole request. */
  requestTimeout: 30_000,
  /**
   * For the next request of a connection. Longer than nginx and AWS keep one (60 seconds). The client must close first,
   * or a request that is on its way meets a closed door.
   */
  keepAliveTimeout: 75_000,
  /** Between two looks at the other deadlines. */
  connectionsCheckingInterval: 1000,
};

/** A server with deadlines; whoever gets its requests decides what it answers, and to how many. */
export function createHttpServer(): Server {
  // Clients may end their side once they have sent a request, and still get the answer (RFC 9112, section 9.6).
  // `refusalOf` refuses a missing host as it does several ones, within the bounds of the connection.
  const settings = {
    httpAllowHalfOpen: true,
    // One more than the most: node drops headers beyond this, perhaps the length of the body.
    maxHeadersCount: MOST_HEADERS + 1,
  };
  return Object.assign(createServer({ ...DEADLINES, requireHostHeader: false }), settings);
}

const bare = (status: string, more = '') => `HTTP/1.1 ${status}\r\n${more}Connection: close\r\n\r\n`;
const NOT_ALLOWED = '{"error":"Method Not Allowed"}';
/** To CONNECT, of which node makes no request: this is no proxy (RFC 9110, section 9.3.6). */
export const NO_TUNNEL =
  bare('405 Method Not Allowed', `Content-Type: application/json\r\nContent-Length: ${NOT_ALLOWED.length}\r\n`) +
  NOT_ALLOWED;

/** The answer, in the form in which node refuses what is no HTTP, to a request that nobody may interpret, if it is one. */
export function refusalOf({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  if (rawHeaders.length > 2 * MOST_HEADERS) return bare('431 Request Header Fields Too Large');
  // Of several hosts a proxy in front may have used another one than this service would (RFC 9112, section 3.2).
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1') ? undefined : bare('400 Bad Request');
}
