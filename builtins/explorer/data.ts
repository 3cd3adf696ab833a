import type { DescribedAuth, ServiceDescription } from '../../plugins-sdk/openapi.ts';
import type { PublicEndpoint } from './endpoint.ts';

/** A type of `auth`, as far as the page can help with it. */
export interface Access {
  readonly title: string;
  /** Whether it lets everyone in. */
  readonly open?: true | undefined;
  /** The request header that carries the credentials; absent where there is none, or nobody said which. */
  readonly header?: string | undefined;
  readonly hints: readonly string[];
  /** What the header holds where it is JSON. */
  readonly example?: Readonly<Record<string, unknown>> | undefined;
}

/** What the page is told: nothing that a client may not know. */
export interface PageData {
  /** The address that this service says it signs with. */
  readonly node: string;
  /** What the operator calls the service, and what clients should know of it. */
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Whether the service describes itself at `openapi.json`, beside the page. */
  readonly openapi: boolean;
  /** In the order of the config. */
  readonly endpoints: readonly PublicEndpoint[];
  /** The types of `auth` that endpoints have and a plugin describes. */
  readonly auth: Readonly<Record<string, Access>>;
  /** What is said of the modes that endpoints have. */
  readonly modes: Readonly<Record<string, string | undefined>>;
}

function accessOf(type: string, { scheme, title = type, hints = [], example }: DescribedAuth): Access {
  const { in: place, name } = scheme ?? {};
  const header = place === 'header' && typeof name === 'string' ? name : undefined;
  return { title, open: scheme === undefined ? true : undefined, header, hints, example };
}

/** The data of a page, of what plugins say and endpoints use; JSON leaves out what is undefined. */
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
