import { assertRefused, endpointUrl, JSON_HEADERS } from './http.ts';
import type { Lifetime } from './lifetime.ts';
import { pluginFiles } from './plugin-files.ts';
import { type Block, oneApi, type RunningService, serviceFor, TEST_ADDRESS } from './service.ts';
import { type Handler, upstreamFor } from './upstream.ts';
import { verifyEncoded, verifyRaw } from './verify.ts';

type Headers = Record<string, string>;

/** What a service has beside its endpoints: keys of its config, and what is not of it. */
interface More extends Block {
  /** Keys of the API. */
  readonly api?: Block;
  readonly settings?: Block & { readonly plugins?: readonly object[] };
  /** Answers of the upstream, by path. */
  readonly answers?: Readonly<Record<string, Handler>>;
  /** Sources of plugin files, by name. */
  readonly sources?: Readonly<Record<string, string>>;
  /** Further keys of a plugin's entry, by name. */
  readonly entries?: Readonly<Record<string, object>>;
  /** Further files beside the config, by name. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** A service of one free API called `api`, and its upstream: both end with the test or the suite. */
export async function served(lifetime: Lifetime, endpoints: Readonly<Record<string, Block>>, more: More = {}) {
  const { answers, sources = {}, entries = {}, files, env = {}, settings = {}, ...config } = more;
  const { plugins: given = [], ...others } = settings;
  const upstream = await upstreamFor(lifetime, answers);
  const { files: own, plugins } = pluginFiles(sources, entries);
  const all = oneApi(upstream.url, endpoints, { ...config, settings: { ...others, plugins: [...given, ...plugins] } });
  const service = await serviceFor(lifetime, all, { files: { ...own, ...files }, env });
  return { upstream, service, ...asking(service) };
}

/** Requests to the endpoints of the API called `api`, by their names. */
export function asking(service: RunningService) {
  const post = (name: string, parameters?: unknown, headers?: Headers) =>
    service.post(`api/${name}`, parameters, headers);
  return {
    post,
    /** The URL of the endpoint. */
    at: (name: string) => endpointUrl(service, `api/${name}`),
    /** The verified answer of an endpoint that encodes. */
    encoded: async (...asked: Parameters<typeof post>) => verifyEncoded(await post(...asked), TEST_ADDRESS),
    /** What the upstream said, in the verified answer of an endpoint without an encoding. */
    raw: async (...asked: Parameters<typeof post>) => (await verifyRaw(await post(...asked), TEST_ADDRESS)).rawData,
    /** Asserts that the request is refused by this status and text. */
    refused: async (status: number, error: string, ...asked: Parameters<typeof post>) =>
      assertRefused(await post(...asked), status, error),
  };
}

/** POSTs to an endpoint for a client that may leave: its outcome is the status, or `left`. */
export function visit(service: RunningService, endpoint: string, parameters: unknown = {}) {
  const client = new AbortController();
  const init = { method: 'POST', headers: JSON_HEADERS, body: JSON.stringify({ parameters }), signal: client.signal };
  const outcome = fetch(endpointUrl(service, endpoint), init).then(
    ({ status }) => status,
    () => 'left' as const,
  );
  return { outcome, leave: () => client.abort() };
}
