import type { DescribedAuth, ServiceDescription } from '../../plugins-sdk/openapi.ts';
import type { PublicEndpoint } from './endpoint.ts';

/** What the page shows of a type of `auth`. */
export interface Access {
  readonly title: string;
  /** Whether it lets everyone in. */
  readonly open?: true | undefined;
  /** The request header for the credentials; absent if there is none, or the plugin does not describe it. */
  readonly header?: string | undefined;
  readonly hints: readonly string[];
  /** An example of the header's value, if that is JSON. */
  readonly example?: Readonly<Record<string, unknown>> | undefined;
}

/** The data of the page; all of it may be public. */
export interface PageData {
  /** The signer's address, as the service states it. */
  readonly node: string;
  /** The operator's name for the service, and notes for clients. */
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Whether the service describes itself at `openapi.json`, beside the page. */
  readonly openapi: boolean;
  /** In the order of the config. */
  readonly endpoints: readonly PublicEndpoint[];
  /** The types of `auth` that endpoints have and a plugin describes. */
  readonly auth: Readonly<Record<string, Access>>;
  /** The titles of the modes that endpoints have. */
  readonly modes: Readonly<Record<string, string | undefined>>;
}

function accessOf(type: string, { scheme, title = type, hints = [], example }: DescribedAuth): Access {
  const { in: place, name } = scheme ?? {};
  const header = place === 'header' && typeof name === 'string' ? name : undefined;
  return { title, open: scheme === undefined ? true : undefined, header, hints, example };
}

/** Makes the page's data from the plugins' descriptions of what endpoints use; JSON leaves out undefined members. */
export function pageData(
  about: Pick<PageData, 'node' | 'openapi' | 'title' | 'description'>,
  endpoints: readonly PublicEndpoint[],
  { auth, modes }: ServiceDescription,
): PageData {
  const types = new Set(endpoints.flatMap((endpoint) => endpoint.auth));
  const used = new Set(endpoints.map(({ mode }) => mode));
  const ways = [...auth].filter(([type]) => types.has(type));
  const titles = [...modes].filter(([mode]) => used.has(mode)).map(([mode, { title }]) => [mode, title] as const);
  return {
    ...about,
    endpoints,
    auth: Object.fromEntries(ways.map(([type, described]) => [type, accessOf(type, described)])),
    modes: Object.fromEntries(titles),
  };
}
