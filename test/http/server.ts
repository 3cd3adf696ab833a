import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { ServerBounds } from '../../http/bounds.ts';
import { Connections, type IncomingRequest } from '../../http/connections.ts';
import { createHttpServer } from '../../http/server.ts';
import { eventually } from '../support/http.ts';

export const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
export const MEBIBYTE = 'x'.repeat(1024 * 1024);

/** One request for each path. */
export function gets(...paths: readonly string[]): string {
  return paths.map((path) => GET.replace('/', path)).join('');
}

/** Requests for `/0`, `/1` and so on. */
export function pipelined(count: number): string {
  return gets(...Array.from({ length: count }, (_, i) => `/${i}`));
}

/** A client that reads nothing until it is told to. */
export function deaf(t: TestContext, url: string, bytes: string, localAddress = '127.0.0.1'): Socket {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress });
  socket.pause().on('error', () => undefined);
  socket.write(bytes);
  t.after(() => socket.destroy());
  return socket;
}

/** A server whose connections have the bounds of the test. */
export interface TestServer {
  readonly url: string;
  readonly server: Server;
  readonly connections: Connections;
  /** Requests whose turn has come, in their order. */
  readonly arrived: IncomingRequest[];
  /** Responses that have ended or lost their connection. */
  readonly closed: ReadonlySet<ServerResponse>;
  /** The one whose turn has come for this path. */
  at(path: string): Promise<IncomingRequest>;
  /** Resolves when the condition holds. */
  until(condition: () => boolean): Promise<void>;
}

/**
 * @param answer what becomes of each request; without it, the test answers.
 * @param now the clock of the server; without it, the real one.
 */
export async function startTestServer(
  t: TestContext,
  bounds: Partial<ServerBounds>,
  answer: (arrived: IncomingRequest) => void = () => undefined,
  now?: () => number,
): Promise<TestServer> {
  const arrived: IncomingRequest[] = [];
  const closed = new Set<ServerResponse>();
  const server = createHttpServer();
  const connections = new Connections(
    server,
    (one) => {
      arrived.push(one);
      one.response.once('close', () => closed.add(one.response));
      answer(one);
    },
    bounds,
    now,
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    connections.closeAll();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const until = async (condition: () => boolean) => {
    await eventually(() => condition() || undefined, 'what the test is about');
  };
  const at = (path: string) =>
    eventually(() => arrived.find(({ request }) => request.url === path), `the request for ${path}`);
  return { url: `http://127.0.0.1:${port}`, server, connections, arrived, closed, at, until };
}

/** Answers with a body, as the service does. */
export function reply({ response, written }: IncomingRequest, body = 'answer'): ServerResponse {
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
  written(Buffer.byteLength(body));
  return response;
}
