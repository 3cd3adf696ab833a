import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Json } from '../../kernel/values.ts';
import { listen, urlOf } from '../../lib/http/listen.ts';

/** A request as it arrived at the upstream. */
export interface UpstreamRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  /** Headers by lower-case name. */
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An upstream of a test. */
export interface TestUpstream {
  /** The value for an API's `url`, without a slash at the end. */
  readonly url: string;
  /** The requests so far, in the order of their arrival. */
  readonly requests: readonly UpstreamRequest[];
}

/**
 * Starts an upstream that answers JSON, on a free port, until the test ends.
 * @param answer called for each request. If it throws, the connection ends without a response.
 */
export async function testUpstream(
  t: { after(end: () => void): void },
  answer: (request: UpstreamRequest) => { readonly data: Json; readonly status?: number },
): Promise<TestUpstream> {
  const requests: UpstreamRequest[] = [];
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url: path = '', headers } = request;
    const arrived = { method, path, headers, body: await text(request) };
    requests.push(arrived);
    const { data, status = 200 } = answer(arrived);
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(data));
  };
  const server = createServer((request, response) => void respond(request, response).catch(() => request.destroy()));
  const closed = once(server, 'close');
  await listen(server, { port: 0, host: '127.0.0.1' });
  t.after(() => {
    server.close();
    server.closeAllConnections();
    return closed;
  });
  return { url: urlOf(server), requests };
}
