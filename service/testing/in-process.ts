import { once } from 'node:events';
import { type IncomingMessage, request as requestTo, type Server } from 'node:http';
import { type Duplex, duplexPair } from 'node:stream';
import type { Json } from '../../plugins-sdk/index.ts';
import type { ServiceRequest, ServiceResponse, ServiceStream } from '../../plugins-sdk/testing/service.ts';

/** A connection of a server that listens nowhere. @returns the client's end. */
function connect(server: Server, ip: string): Duplex {
  const [client, own] = duplexPair();
  // Neither end learns by itself that the other one is gone.
  client.once('close', () => own.destroy());
  own.once('close', () => client.destroy());
  // What a server asks of a socket: nothing is slow between two ends of one process.
  server.emit('connection', Object.assign(own, { remoteAddress: ip, bytesRead: 0, setTimeout: () => own }));
  return client;
}

/** Resolves with the headers of the response. */
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

/** Resolves with the whole response. */
export async function requestOf<B = Json>(server: Server, request: ServiceRequest): Promise<ServiceResponse<B>> {
  const { status, headers, chunks } = await openIn(server, request);
  let text = '';
  for await (const chunk of chunks) text += chunk;
  const isJson = /^application\/(?:[\w.-]+\+)?json\b/.test(headers['content-type'] ?? '') && text !== '';
  return { status, headers, body: isJson ? JSON.parse(text) : text };
}
