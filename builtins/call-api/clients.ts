import { createHttpClient, type Endpoint, type HttpClient } from '../../plugins-sdk/index.ts';
import { tlsOf } from '../shared/upstream-tls.ts';

/** The HTTP clients of all APIs: one for each API with `tls`, and one for all others. */
export class Clients {
  readonly #usual: HttpClient;
  readonly #own: ReadonlyMap<string, HttpClient>;

  /** @param connections most sockets per origin. */
  constructor(endpoints: readonly Endpoint[], connections: number) {
    this.#usual = createHttpClient({ connections });
    const options = new Map(endpoints.map((endpoint) => [endpoint.api, tlsOf(endpoint)]));
    const own = [...options].filter(([, tls]) => tls !== undefined);
    this.#own = new Map(own.map(([api, tls]) => [api, createHttpClient({ connections, tls })]));
  }

  of({ api }: Endpoint): HttpClient {
    return this.#own.get(api) ?? this.#usual;
  }

  async close(): Promise<void> {
    await Promise.all([this.#usual, ...this.#own.values()].map((client) => client.close()));
  }
}
