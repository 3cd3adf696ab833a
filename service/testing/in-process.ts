import { once } from 'node:events';
import { type IncomingMessage, request as requestTo, type Server } from 'node:http';
import { type Duplex, duplexPair } from 'node:stream';
import type { Json } from '../../plugins-sdk/index.ts';
import type { ServiceRequest, ServiceResponse, ServiceStream } from '../../plugins-sdk/testing/service.ts';

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

/** Sends a request; resolves with the response's head, while its body streams. */
export async function openIn(server: Server, request: ServiceRequest): Promise<ServiceStream> {
  const { method = 'GET', path, headers = {}, body, ip = '127.0.0.1', signal } = request;
  const outgoing = requestTo({
    method,
    path,
    headers: { ...headers },
    createConnection: () => connect(server, ip),
    ...(signal === undefined ? {} : { signal }),
  });
  outgoing.end(body);
  const [response]: IncomingMessage[] = await once(outgoing, 'response');
  if (response === undefined) throw new Error('there is no response');
  const all = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
  response.setEncoding('utf8');
  return { status: response.statusCode ?? 0, headers: Object.fromEntries(all), chunks: response };
}

/** Sends a request; resolves with the whole response. */
export async function requestOf<B = Json>(server: Server, request: ServiceRequest): Promise<ServiceResponse<B>> {
  const { status, headers, chunks } = await openIn(server, request);
  let text = '';
  for await (const chunk of chunks) text += chunk;
  const isJson = /^application\/(?:[\w.-]+\+)?json\b/.test(headers['content-type'] ?? '') && text !== '';
  return { status, headers, body: isJson ? JSON.parse(text) : text };
}
