/** An endpoint has the ID of its specification, and the blocks of the config. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Definition } from '../../plugins-sdk/define.ts';
import { api, builtins, cacheKey, config, endpoint, errorsOf, load } from './support.ts';

test('an endpoint has the names, mode, auth and blocks of the config', async (t) => {
  const given = config({
    apis: [
      api({ auth: { type: 'apiKey', keys: ['k'] }, cache: { maxAge: 9 } }),
      api({
        name: 'b',
        url: 'https://b',
        endpoints: [endpoint({ mode: 'async', auth: [{ type: 'free' }] }), endpoint({ name: 'z', path: '/z' })],
      }),
    ],
  });
  const { endpoints } = await load(t, given);
  const listed = endpoints.map(({ id: _, block: __, apiBlock: ___, ...rest }) => rest);
  assert.deepEqual(listed, [
    { api: 'prices', name: 'latest', mode: 'sync', auth: [{ type: 'apiKey', keys: ['k'] }] },
    { api: 'b', name: 'latest', mode: 'async', auth: [{ type: 'free' }] },
    { api: 'b', name: 'z', mode: 'sync', auth: [{ type: 'free' }] },
  ]);
  const [first] = endpoints;
  assert.deepEqual(first?.block, endpoint());
  assert.equal(first?.apiBlock.url, 'https://api.example');
  assert.deepEqual(first && cacheKey.of(first), { maxAge: 9 });
});

test('a part that a plugin fails to tell is an error at the endpoint', async (t) => {
  const broken: Definition = {
    name: 'broken',
    identity: {
      encrypt: () => {
        throw new Error('secret');
      },
    },
    setup: () => ({}),
  };
  assert.deepEqual(await errorsOf(t, config(), { builtins: [...builtins, broken] }), [
    'apis[0].endpoints[0]: the endpoint ID cannot be derived: a plugin failed to describe the endpoint',
  ]);
});

test('a part that a malformed reference leaves untold is no second error', async (t) => {
  const given = config({ apis: [api({ endpoints: [endpoint({ parameters: '${' })] })] });
  assert.deepEqual(await errorsOf(t, given), [
    'apis[0].endpoints[0].parameters: malformed variable reference: write ${NAME}, or $${ for the text ${',
  ]);
});

test('warnings of checks are handed over', async (t) => {
  const warner: Definition = {
    name: 'warner',
    check: ({ endpoints }) => endpoints.map(({ path }) => ({ level: 'warning', path, message: 'hm' })),
    setup: () => ({}),
  };
  assert.deepEqual((await load(t, config(), { builtins: [...builtins, warner] })).warnings, [
    { level: 'warning', path: 'apis[0].endpoints[0]', message: 'hm', where: 'prices/latest, line 8' },
  ]);
});
