/** A config whose variables are not set is checked as far as that goes. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadedConfig } from '../../config/index.ts';
import { configKey, Type } from '../../plugins-sdk/config-key.ts';
import type { Definition, Finding } from '../../plugins-sdk/define.ts';
import { api, builtins, config, endpoint, errorsOf, load, warningsOf } from './support.ts';

const allowUnset = true;
const unidentifiedIn = (loaded: LoadedConfig) => warningsOf(loaded).filter((line) => line.includes('no endpoint ID'));
const textsOf = ({ explained }: LoadedConfig) => explained.map(({ text }) => text);

test('the IDs of endpoints that need no variable are those with the variables', async (t) => {
  const apis = [
    api({
      headers: { Authorization: 'Bearer ${TOKEN}' },
      auth: [
        { type: 'apiKey', keys: ['${KEY}'] },
        { type: 'paid', network: '${CHAIN}', rpc: '${RPC}' },
      ],
      endpoints: [endpoint({ parameters: [{ name: 'k', fixed: '${SECRET}' }] })],
    }),
  ];
  const given = config({ apis, server: { port: '${PORT}', rateLimit: { trust: '${TRUST}' } } });
  const env = { TOKEN: 't', KEY: 'k', CHAIN: '1', RPC: 'https://rpc', SECRET: 's', PORT: '80', TRUST: 'true' };
  const full = await load(t, given, { env });
  const loaded = await load(t, given, { allowUnset });
  assert.deepEqual(textsOf(loaded), textsOf(full));
  assert.equal(loaded.endpoints[0]?.id, full.endpoints[0]?.id);
  // Plugins get nothing of a wrong type.
  assert.deepEqual(loaded.config.server, { port: 1, rateLimit: { trust: 1 } });
  assert.deepEqual(warningsOf(loaded), [
    'server.port: the variable PORT is not set',
    'server.rateLimit.trust: the variable TRUST is not set',
    'apis[0].auth[0].keys[0]: the variable KEY is not set',
    'apis[0].auth[1].network: the variable CHAIN is not set',
    'apis[0].auth[1].rpc: the variable RPC is not set',
    'apis[0].headers.Authorization: the variable TOKEN is not set',
    'apis[0].endpoints[0].parameters[0].fixed: the variable SECRET is not set',
  ]);
});

test('what a check says about a stand-in, or because of one, is left out', async (t) => {
  const finding = (path: string): Finding => ({ level: 'error', path, message: 'wrong' });
  const check: Definition = {
    name: 'check',
    check: ({ endpoints }) => [
      finding('apis[0].url'),
      finding('apis[0].headers'),
      ...endpoints.map(({ path }) => finding(`${path}.parameters`)),
    ],
    setup: () => ({}),
  };
  const apis = [
    api({
      url: '${URL}',
      endpoints: [
        endpoint({ path: '${PATH}' }),
        endpoint({ name: 'b', path: '/b', parameters: [{ name: 'k', fixed: '${SECRET}' }] }),
        endpoint({ name: 'c', path: '/c' }),
      ],
    }),
  ];
  assert.deepEqual(
    await errorsOf(t, config({ apis }), { allowUnset, builtins: [...builtins, check], env: { URL: 'https://u' } }),
    [
      'apis[0].headers: wrong',
      'apis[0].url: wrong',
      'apis[0].endpoints[1].parameters: wrong',
      'apis[0].endpoints[2].parameters: wrong',
    ],
  );
  const errors = await errorsOf(t, config({ apis }), { allowUnset, builtins: [...builtins, check] });
  assert.ok(!errors.includes('apis[0].url: wrong'));
});

test('where no stand-in fits its schema, the ID is known as long as it does not show it', async (t) => {
  const keys = [
    configKey('endpoint', 'code', Type.Optional(Type.String({ pattern: '^[A-Z]{3}#$' }))),
    configKey('endpoint', 'count', Type.Optional(Type.Integer())),
  ];
  const extra: Definition = {
    name: 'extra',
    keys,
    identity: { encrypt: ({ block }) => (block.count === undefined ? null : String(block.count)) },
    setup: () => ({}),
  };
  const apis = [
    api({ endpoints: [endpoint({ code: '${CODE}' }), endpoint({ name: 'b', path: '/b', count: '${COUNT}' })] }),
  ];
  const loaded = await load(t, config({ apis }), { allowUnset, builtins: [...builtins, extra] });
  const names = loaded.endpoints.map(({ name }) => name);
  assert.deepEqual(names, ['latest']);
  assert.deepEqual(warningsOf(loaded), [
    'apis[0].endpoints[0].code: the variable CODE is not set',
    'apis[0].endpoints[1]: no endpoint ID: it depends on the variable COUNT',
    'apis[0].endpoints[1].count: the variable COUNT is not set',
  ]);
});

test('a plugin that fails on a stand-in makes the endpoint depend on it', async (t) => {
  const strict: Definition = {
    name: 'strict',
    identity: { encoding: ({ apiBlock }) => new URL(String(apiBlock.url)).host },
    setup: () => ({}),
  };
  const loaded = await load(t, config({ apis: [api({ url: '${U}' })] }), {
    allowUnset,
    builtins: [...builtins, strict],
  });
  assert.deepEqual(loaded.endpoints, []);
  assert.ok(warningsOf(loaded).includes('apis[0].endpoints[0]: no endpoint ID: it depends on the variable U'));
});

test('an ID shows the variable that is meant, whatever text follows it', async (t) => {
  const paths = ['/${FOO}x', '/${FOO}_x', '/${FOO_BAR}', '/${FOOD}/${FOO}'];
  const endpoints = paths.map((path, index) => endpoint({ name: `e${index}`, path }));
  const loaded = await load(t, config({ apis: [api({ endpoints })] }), { allowUnset });
  assert.deepEqual(unidentifiedIn(loaded), [
    'apis[0].endpoints[0]: no endpoint ID: it depends on the variable FOO',
    'apis[0].endpoints[1]: no endpoint ID: it depends on the variable FOO',
    'apis[0].endpoints[2]: no endpoint ID: it depends on the variable FOO_BAR',
    'apis[0].endpoints[3]: no endpoint ID: it depends on the variables FOO, FOOD',
  ]);
});

test('variables that an ID shows are named wherever they stand', async (t) => {
  const keys = [
    configKey('endpoint', 'note', Type.Optional(Type.String())),
    configKey('endpoint', 'nosy', Type.Optional(Type.Boolean())),
  ];
  const nosy: Definition = {
    name: 'nosy',
    keys,
    identity: {
      encoding: ({ block }, { endpoints }) => (block.nosy === true ? String(endpoints[2]?.block.note) : null),
      encrypt: ({ block }, { config: { server } }) => (block.name === 'port' ? JSON.stringify(server) : null),
    },
    setup: () => ({}),
  };
  const endpoints = [
    endpoint({ name: 'near and far', path: '/${A}/${B}', nosy: true }),
    endpoint({ name: 'far', path: '/n', nosy: true }),
    endpoint({ name: 'c', path: '/c', note: '${NOTE}' }),
    endpoint({ name: 'port', path: '/p' }),
    endpoint({ name: 'e', path: '/e/${A}', note: '${MORE}' }),
  ];
  const given = config({ apis: [api({ endpoints }), api({ name: 'z', url: '${Z}/x' })], server: { port: '${PORT}' } });
  const loaded = await load(t, given, { allowUnset, builtins: [...builtins, nosy], env: { Z: 'https://z' } });
  assert.deepEqual(unidentifiedIn(loaded), [
    'apis[0].endpoints[0]: no endpoint ID: it depends on the variables A, B, NOTE',
    'apis[0].endpoints[1]: no endpoint ID: it depends on the variable NOTE',
    'apis[0].endpoints[3]: no endpoint ID: it depends on the variable PORT',
    'apis[0].endpoints[4]: no endpoint ID: it depends on the variable A',
  ]);
  const names = loaded.endpoints.map(({ name }) => name);
  assert.deepEqual(names, ['c', 'latest']);
});

test('a plugin whose factory would get stand-ins is not called', async (t) => {
  const files = { 'p.mjs': 'export default (config) => { throw new Error("called with " + config.token); };' };
  const settings = { plugins: [{ source: './p.mjs', config: { token: '${TOKEN}' } }, { source: '${SOURCE}' }] };
  const loaded = await load(t, config({ settings }), { allowUnset, files });
  assert.ok(loaded.plugins.every(({ operator }) => !operator));
  assert.deepEqual(warningsOf(loaded), [
    'settings.plugins[0].config: the plugin is not loaded: its config has variables that are not set',
    'settings.plugins[0].config.token: the variable TOKEN is not set',
    'settings.plugins[1].source: the variable SOURCE is not set',
  ]);
});
