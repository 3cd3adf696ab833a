import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { type Arrived, Connections, type ServerBounds } from '../../http/connections.ts';
import { createHttpServer } from '../../http/server.ts';

/** A server whose connections have the bounds of the test. */
export interface TestServer {
  readonly url: string;
  readonly connections: Connections;
  /** Requests whose turn has come, in their order. */
  readonly arrived: Arrived[];
  /** Responses that have ended or lost their connection. */
  readonly closed: ReadonlySet<ServerResponse>;
  /** Resolves when the condition holds. */
  until(condition: () => boolean): Promise<void>;
}

/** @param answer what becomes of each request; without it, the test answers. */
export async function startTestServer(
  t: TestContext,
  bounds: Partial<ServerBounds>,
  answer: (arrived: Arrived) => void = () => undefined,
): Promise<TestServer> {
  const arrived: Arrived[] = [];
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
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const until = async (condition: () => boolean) => {
    while (!condition()) await setTimeout(5);
  };
  return { url: `http://127.0.0.1:${port}`, connections, arrived, closed, until };
}

/** Answers with a body, as the service does. */
export function reply({ response, written }: Arrived, body = 'answer'): ServerResponse {
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
  written(Buffer.byteLength(body));
  return response;
}
