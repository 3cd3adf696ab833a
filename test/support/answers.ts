import assert from 'node:assert/strict';

/** Asserts an error answer: its status, its whole body and its media type. */
export async function assertError(response: Response, status: number, error: string): Promise<void> {
  const text = await response.text();
  assert.deepEqual([response.status, text], [status, JSON.stringify({ error })]);
  assert.equal(response.headers.get('content-type')?.split(';')[0], 'application/json');
}

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
