/** An endpoint has the ID of its specification, and the blocks of the config. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { id as keccakOfText } from 'ethers';
import type { Definition } from '../../plugins-sdk/define.ts';
import { api, builtins, cacheKey, config, endpoint, errorsOf, load, warningsOf } from './support.ts';

test('an ID is the keccak of the canonical text of exactly six members', async (t) => {
  const { endpoints, explained } = await load(t, config());
  const text =
    '{"encoding":null,"encrypt":null,"method":"GET","parameters":[],"path":"/latest","url":"https://api.example"}';
  assert.deepEqual(explained, [{ endpoint: endpoints[0], text }]);
  assert.equal(endpoints[0]?.id, keccakOfText(text));
});

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

test('names, descriptions, auth, headers and order do not change IDs; the request does', async (t) => {
  const idOf = async (changes: Record<string, unknown>, own: Record<string, unknown> = {}) => {
    const { endpoints } = await load(t, config({ apis: [api({ endpoints: [endpoint(own)], ...changes })] }));
    return endpoints[0]?.id;
  };
  const id = await idOf({});
  assert.equal(await idOf({ name: 'x', headers: { a: 'b' }, auth: { type: 'apiKey', keys: ['k'] } }), id);
  assert.equal(await idOf({}, { name: 'y', description: 'd', mode: 'async', cache: { maxAge: 1 } }), id);
  assert.equal(await idOf({}, { method: 'GET' }), id);
  assert.notEqual(await idOf({}, { method: 'POST' }), id);
  assert.notEqual(await idOf({}, { path: '/other' }), id);
  assert.notEqual(await idOf({ url: 'https://other' }), id);
  assert.notEqual(await idOf({}, { parameters: [{ name: 'a' }] }), id);
});

test('a fixed value from a variable is not in the ID, a literal one is', async (t) => {
  const idOf = async (fixed: string, K = '1') => {
    const apis = [api({ endpoints: [endpoint({ parameters: [{ name: 'key', fixed }] })] })];
    return (await load(t, config({ apis }), { env: { K } })).endpoints[0]?.id;
  };
  assert.equal(await idOf('${K}', 'one'), await idOf('${K}', 'two'));
  assert.notEqual(await idOf('one'), await idOf('two'));
});

test('a part that has no canonical form is an error at the endpoint', async (t) => {
  const lone = await errorsOf(t, config({ apis: [api({ endpoints: [endpoint({ path: '/${V}' })] })] }), {
    env: { V: '\ud800' },
  });
  assert.deepEqual(lone, [
    'apis[0].endpoints[0]: the endpoint ID cannot be derived: a string with a lone surrogate has no canonical JSON (RFC 8785)',
  ]);
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

test('no auth means free, with a warning for each endpoint', async (t) => {
  const { auth: _, ...open } = api({
    endpoints: [endpoint(), endpoint({ name: 'b', path: '/b', auth: { type: 'free' } })],
  });
  const loaded = await load(t, config({ apis: [open] }));
  assert.deepEqual(loaded.endpoints[0]?.auth, [{ type: 'free' }]);
  assert.deepEqual(warningsOf(loaded), [
    'apis[0].endpoints[0]: no auth on the API or the endpoint: "prices/latest" is free for everyone',
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
