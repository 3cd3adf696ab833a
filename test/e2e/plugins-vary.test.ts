/** What a plugin varies by is part of each key of a request. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

/** Hands a header of the client on, which no parameter says. */
const LANGUAGES = `export default { name: 'languages', setup: () => ({
  hooks: { callApi: (request, { headers }, { next }) =>
    next({ ...request, headers: { ...request.headers, 'Accept-Language': headers['x-language'] } }) },
  vary: ({ headers }) => headers['x-language'],
}) };`;
const SIZES = `export default { name: 'sizes', setup: () => ({ vary: ({ headers }) => headers['x-size'] }) };`;

it('what a plugin varies by is part of every key: in the cache, and among those who ask at the same time', async (t) => {
  const upstream = await upstreamFor(t, {
    '/e': (request, response, recorded) =>
      faults.json({ language: recorded.headers['accept-language'] })(request, response, recorded),
  });
  const { files, plugins } = pluginFiles({ languages: LANGUAGES, sizes: SIZES });
  const endpoints = { e: { cache: { maxAge: 60_000 } } };
  const service = await serviceFor(t, oneApi(upstream.url, endpoints, { settings: { plugins } }), { files });
  const ask = async (language: string, size: string) => {
    const response = await service.post('api/e', {}, { 'X-Language': language, 'X-Size': size });
    assert.equal(response.status, 200);
    return JSON.parse(await response.text()).rawData;
  };
  const [de, en] = [{ language: 'de' }, { language: 'en' }];
  assert.deepEqual(await Promise.all([ask('de', 's'), ask('en', 's'), ask('de', 's')]), [de, en, de]);
  assert.equal(upstream.requests.length, 2);
  assert.deepEqual([await ask('de', 's'), await ask('en', 's')], [de, en]);
  assert.equal(upstream.requests.length, 2);
  // Texts of two plugins are no other pair when a letter moves from one to the other.
  assert.deepEqual([await ask('de', 'xs'), await ask('dex', 's')], [de, { language: 'dex' }]);
  assert.equal(upstream.requests.length, 4);
});

it('a variation that fails refuses the request, and names the plugin', async (t) => {
  const failing = `export default { name: 'failing', setup: () => ({ vary: () => 7 }) };`;
  const { files, plugins } = pluginFiles({ failing });
  const service = await serviceFor(t, oneApi('http://a.invalid', { e: {} }, { settings: { plugins } }), { files });
  await assertRefused(await service.post('api/e'), 500, 'Internal server error');
  const said = service.logs.map(({ fields }) => String(fields.detail)).find((reason) => reason.includes('"failing"'));
  assert.match(said ?? '', /: a variation must be a text$/m);
});
