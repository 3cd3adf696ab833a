import { once } from 'node:events';
import { type IncomingMessage, request as requestTo, type Server } from 'node:http';
import { type Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Json } from '../../plugins-sdk/index.ts';
import type { ServiceRequest, ServiceResponse } from '../../plugins-sdk/testing/service.ts';

/** Connects to a server that listens at no port. @returns the client's end. */
function connect(server: Server, ip: string): Duplex {
  const [client, own] = duplexPair();
  // The ends of a duplex pair do not close each other.
  client.once('close', () => own.destroy());
  own.once('close', () => client.destroy());
  // The server reads these members of a socket. It needs no timeouts: between two ends in one process nothing is slow.
  server.emit('connection', Object.assign(own, { remoteAddress: ip, bytesRead: 0, setTimeout: () => own }));
  return client;
}

/** Sends a request; resolves with the whole response. */
export async function requestOf<B = Json>(server: Server, request: ServiceRequest): Promise<ServiceResponse<B>> {
  const { method = 'GET', path, headers: sent = {}, body, ip = '127.0.0.1', signal } = request;
  const outgoing = requestTo({
    method,
    path,
    headers: { ...sent },
    createConnection: () => connect(server, ip),
    ...(signal === undefined ? {} : { signal }),
  });
  outgoing.end(body);
  const [response]: IncomingMessage[] = await once(outgoing, 'response');
  if (response === undefined) throw new Error('there is no response');
  const all = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
  const headers = Object.fromEntries(all);
  const content = await text(response);
  const isJson = /^application\/(?:[\w.-]+\+)?json\b/.test(headers['content-type'] ?? '') && content !== '';
  return { status: response.statusCode ?? 0, headers, body: isJson ? JSON.parse(content) : content };
}
