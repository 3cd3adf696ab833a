import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { Connections, createHttpServer } from '../../http/limits.ts';
import { hostOf } from '../support/https.ts';
import { eventually } from '../support/wait.ts';

export const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
export const MEBIBYTE = 'x'.repeat(1024 * 1024);
/** More than the system's buffers take. */
export const BIG = MEBIBYTE.repeat(16);

type Bounds = ConstructorParameters<typeof Connections>[2];

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

/** A request that has begun. */
export interface Arrived {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** A server whose connections have the bounds of the test. */
export interface TestServer {
  readonly url: string;
  readonly server: Server;
  readonly connections: Connections;
  /** Requests that have begun, in their order. */
  readonly arrived: Arrived[];
  /** Responses that have ended or lost their connection. */
  readonly closed: ReadonlySet<ServerResponse>;
  /** Connections that are open. */
  readonly open: ReadonlySet<Socket>;
  /** The one that has begun for this path. */
  at(path: string): Promise<Arrived>;
  /** Resolves when the condition holds. */
  until(condition: () => boolean): Promise<void>;
}

/** @param answer what becomes of each request; without it, the test answers. */
export async function startTestServer(
  t: TestContext,
  bounds: Bounds,
  answer: (arrived: Arrived) => void = () => undefined,
): Promise<TestServer> {
  const arrived: Arrived[] = [];
  const closed = new Set<ServerResponse>();
  const open = new Set<Socket>();
  const server = createHttpServer();
  server.on('connection', (socket) => open.add(socket.once('close', () => open.delete(socket))));
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const one = { request, response };
    arrived.push(one);
    response.once('close', () => closed.add(response));
    answer(one);
  };
  const connections = new Connections(server, handle, bounds);
  const host = await hostOf(t, server);
  t.after(() => connections.closeAll());
  const until = async (condition: () => boolean) => void (await eventually(condition));
  const at = (path: string) =>
    eventually(() => arrived.find(({ request }) => request.url === path), `the request for ${path}`);
  return { url: `http://${host}`, server, connections, arrived, closed, open, at, until };
}

/**
 * Resolves when a client that reads nothing has lost its connection: one that was timed before has lost it, too.
 * @param server answers `/deaf` with {@link BIG}.
 */
export async function untilOneStalls(t: TestContext, server: TestServer): Promise<void> {
  deaf(t, server.url, gets('/deaf'));
  const { response } = await server.at('/deaf');
  await server.until(() => server.closed.has(response));
}

/** Answers with a body. */
export function reply({ response }: Arrived, body = 'answer'): ServerResponse {
  response.setHeader('Content-Length', Buffer.byteLength(body));
  return response.end(body);
}
