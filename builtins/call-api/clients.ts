import { createHttpClient, type Endpoint, type HttpClient, perEndpoint } from '../../plugins-sdk/index.ts';
import { tlsOf } from '../shared/upstream-tls.ts';

/**
 * Makes the HTTP clients of all APIs: one for each API with `tls`, and one for all others.
 * @param connections most sockets per origin.
 */
export function clientsFor(endpoints: readonly Endpoint[], connections: number) {
  const usual = createHttpClient({ connections });
  const own = new Map<string, HttpClient>();
  const clientOf = perEndpoint(endpoints, (endpoint) => {
    const tls = tlsOf(endpoint);
    if (tls !== undefined && !own.has(endpoint.api)) own.set(endpoint.api, createHttpClient({ connections, tls }));
    return own.get(endpoint.api) ?? usual;
  });
  const close = () => Promise.all([usual, ...own.values()].map((client) => client.close()));
  return { clientOf, close };
}
