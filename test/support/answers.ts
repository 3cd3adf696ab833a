type Block = Readonly<Record<string, unknown>>;

/** A config with one free API called `api`; endpoints are given by name. */
export function oneApi(
  url: string,
  endpoints: Readonly<Record<string, Block>>,
  { api = {}, ...rest }: { api?: Block } & Block = {},
) {
  const list = Object.entries(endpoints).map(([name, endpoint]) => ({ name, path: `/${name}`, ...endpoint }));
  return { ...rest, apis: [{ name: 'api', url, auth: { type: 'free' }, ...api, endpoints: list }] };
}
