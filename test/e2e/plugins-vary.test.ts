/** What a plugin varies by is part of each key of a request. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { served } from '../support/served.ts';
import { faults, type Handler } from '../support/upstream.ts';

/** Hands a header of the client on, which no parameter says. */
const LANGUAGES = `export default { name: 'languages', setup: () => ({
  hooks: { callApi: (request, { headers }, { next }) =>
    next({ ...request, headers: { ...request.headers, 'Accept-Language': headers['x-language'] } }) },
  vary: ({ headers }) => headers['x-language'],
}) };`;
const SIZES = `export default { name: 'sizes', setup: () => ({ vary: ({ headers }) => headers['x-size'] }) };`;

it('what a plugin varies by is part of every key: in the cache, and among those who ask at the same time', async (t) => {
  const echo: Handler = (request, response, recorded) =>
    faults.json({ language: recorded.headers['accept-language'] })(request, response, recorded);
  const more = { answers: { '/e': echo }, sources: { languages: LANGUAGES, sizes: SIZES } };
  const { upstream, raw } = await served(t, { e: { cache: { maxAge: 60_000 } } }, more);
  const ask = (language: string, size: string) => raw('e', {}, { 'X-Language': language, 'X-Size': size });
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
  const { service, refused } = await served(t, { e: {} }, { sources: { failing } });
  await refused(500, 'Internal server error', 'e');
  const said = service.logs.map(({ fields }) => String(fields.detail)).find((reason) => reason.includes('"failing"'));
  assert.match(said ?? '', /: a variation must be a text$/m);
});
