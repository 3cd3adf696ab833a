import type { DescribedAuth, ServiceDescription } from '../../plugins-sdk/openapi.ts';
import type { PublicEndpoint } from './endpoint.ts';

/** A type of `auth`, as far as the page can help with it. */
export interface Access {
  readonly title: string;
  /** Whether it lets everyone in. */
  readonly open?: true;
  /** The request header that carries the credentials; absent where there is none, or nobody said which. */
  readonly header?: string;
  readonly hints: readonly string[];
  /** What the header holds where it is JSON. */
  readonly example?: Readonly<Record<string, unknown>>;
}

/** What the page is told: nothing that a client may not know. */
export interface PageData {
  /** The address that this service says it signs with. */
  readonly node: string;
  /** What the operator calls the service, and what clients should know of it. */
  readonly title?: string;
  readonly description?: string;
  /** Whether the service describes itself at `openapi.json`, beside the page. */
  readonly openapi: boolean;
  /** In the order of the config. */
  readonly endpoints: readonly PublicEndpoint[];
  /** The types of `auth` that endpoints have and a plugin describes. */
  readonly auth: Readonly<Record<string, Access>>;
  /** What is said of the modes that endpoints have. */
  readonly modes: Readonly<Record<string, string>>;
}

function accessOf(type: string, { scheme, title = type, hints = [], example }: DescribedAuth): Access {
  const { in: place, name } = scheme ?? {};
  return {
    title,
    ...(scheme === undefined ? { open: true } : {}),
    ...(place === 'header' && typeof name === 'string' ? { header: name } : {}),
    hints,
    ...(example === undefined ? {} : { example }),
  };
}

/** The data of a page, of what plugins say and endpoints use. */
export function pageData(
  about: Pick<PageData, 'node' | 'openapi' | 'title' | 'description'>,
  endpoints: readonly PublicEndpoint[],
  { auth, modes }: ServiceDescription,
): PageData {
  const types = new Set(endpoints.flatMap((endpoint) => endpoint.auth));
  const used = new Set(endpoints.map(({ mode }) => mode));
  return {
    ...about,
    endpoints,
    auth: Object.fromEntries(
      [...auth].filter(([type]) => types.has(type)).map(([type, described]) => [type, accessOf(type, described)]),
    ),
    modes: Object.fromEntries(
      [...modes].flatMap(([mode, { title }]) => (used.has(mode) && title !== undefined ? [[mode, title]] : [])),
    ),
  };
}
