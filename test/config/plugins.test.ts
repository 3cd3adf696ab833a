/** Plugins are loaded in order, and a bad one says what is wrong with it. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { LoadedConfig } from '../../config/index.ts';
import { configKey, type Definition, Type } from '../../plugins-sdk/index.ts';
import { builtins, config, errorsOf, folder, load } from './support.ts';

const simple = 'export default { name: "audit", hooks: { onError() {} } };';

function withPlugins(...plugins: unknown[]): Record<string, unknown> {
  return config({ settings: { plugins } });
}

function operators({ plugins }: LoadedConfig) {
  return plugins.filter(({ operator }) => operator);
}

test('built-ins come first in their own order, operators in the order of the config', async (t) => {
  const files = {
    'plugins/one.ts': 'type A = string; const name: A = "one"; export default { name, hooks: {} };',
    'two.js': 'module.exports = { name: "two", hooks: {} };',
  };
  const entries = [{ source: 'plugins/one.ts' }, { source: './two.js' }];
  const { plugins } = await load(t, withPlugins(...entries), { files });
  assert.deepEqual(
    plugins.map(({ definition, source, operator, budget }) => [definition.name, source, operator, budget]),
    [
      ['limits', 'builtin:limits', false, 'none'],
      ['access', 'builtin:access', false, 1000],
      ['upstream', 'builtin:upstream', false, 1000],
      ['parameters', 'builtin:parameters', false, 1000],
      ['cache', 'builtin:cache', false, 1000],
      ['one', 'plugins/one.ts', true, 1000],
      ['two', './two.js', true, 1000],
    ],
  );
});

test('an absolute path works', async (t) => {
  const dir = await folder(t, { 'a.mjs': simple });
  assert.equal(operators(await load(t, withPlugins({ source: join(dir, 'a.mjs') })))[0]?.definition.name, 'audit');
});

test('a TypeBox schema fills in its defaults', async (t) => {
  const entry = builtins.map(
    (definition): Definition =>
      definition.name === 'cache'
        ? {
            ...definition,
            configSchema: Type.Object({ size: Type.Integer({ default: 3 }), log: Type.Optional(Type.Boolean()) }),
          }
        : definition,
  );
  const configOf = async (...plugins: unknown[]) => {
    const loaded = await load(t, withPlugins(...plugins), { builtins: entry });
    return loaded.plugins.find(({ source }) => source === 'builtin:cache')?.config;
  };
  assert.deepEqual(await configOf(), { size: 3 });
  assert.deepEqual(await configOf({ source: 'builtin:cache', config: { size: 4, log: true } }), { size: 4, log: true });
  assert.deepEqual(
    await errorsOf(t, withPlugins({ source: 'builtin:cache', config: { size: 'x' } }), { builtins: entry }),
    ['settings.plugins[0].config.size: expected an integer, found a string'],
  );
});

test('a config keeps the order that it is written in, and a text of a wrong form is one mistake', async (t) => {
  const code = `
    const mail = { type: 'string', pattern: '@', format: 'email' };
    export const configSchema = { type: 'object', properties: { first: { default: 1 }, last: {}, mail } };
    export default () => ({ name: 'p', hooks: {} });`;
  const given = { files: { 'p.mjs': code } };
  const withConfig = (config: object) => withPlugins({ source: './p.mjs', config });
  const [plugin] = operators(await load(t, withConfig({ mail: 'me@example.com', last: 2 }), given));
  assert.deepEqual(Object.entries(plugin?.config ?? {}), [
    ['mail', 'me@example.com'],
    ['last', 2],
    ['first', 1],
  ]);
  assert.deepEqual(await errorsOf(t, withConfig({ mail: 'me' }), given), [
    'settings.plugins[0].config.mail: has the wrong form (pattern @)',
  ]);
});

test('a JSON schema fills in its defaults, too, at any depth', async (t) => {
  const code = `
    export const configSchema = {
      type: 'object',
      required: ['max'],
      properties: {
        max: { type: 'integer', default: 5 },
        constructor: { type: 'string', default: 'own' },
        nested: { type: 'object', default: {}, properties: { on: { type: 'boolean', default: false }, x: {} } },
        absent: { type: 'object', properties: { y: { default: 1 } } },
        list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer', default: 2 } } } },
        pair: { type: 'array', prefixItems: [{ type: 'object', properties: { p: { default: 3 } } }, {}] },
        rates: { type: 'object', additionalProperties: { type: 'object', properties: { r: { default: 4 } } } },
        kind: { anyOf: [
          { type: 'object', required: ['type'], properties: { type: { const: 'a' }, a: { default: 6 } } },
          { type: 'object', required: ['type'], properties: { type: { const: 'b' }, b: { default: 7 } } },
        ] },
        both: { allOf: [{ properties: { q: { default: 8 } } }, { properties: { s: { default: 9 } } }] },
        shared: { type: 'array', default: [1], items: { type: 'integer' } },
      },
    };
    export default () => ({ name: 'p', hooks: {} });`;
  const given = { files: { 'p.mjs': code } };
  const withConfig = (config?: object) => withPlugins({ source: './p.mjs', ...(config && { config }) });
  const configOf = async (config?: object) => operators(await load(t, withConfig(config), given))[0]?.config;
  const always = { max: 5, constructor: 'own', nested: { on: false }, shared: [1] };
  assert.deepEqual(await configOf(), always);
  assert.deepEqual(await configOf({ max: 1, nested: { on: true }, shared: [], constructor: 'x' }), {
    ...{ max: 1, constructor: 'x', nested: { on: true }, shared: [] },
  });
  const deep = {
    list: [{}, { n: 0 }],
    pair: [{}, null],
    rates: { usd: {}, eur: { r: 1 } },
    kind: { type: 'b' },
    both: {},
  };
  assert.deepEqual(await configOf(deep), {
    ...always,
    ...{ list: [{ n: 2 }, { n: 0 }], pair: [{ p: 3 }, null], rates: { usd: { r: 4 }, eur: { r: 1 } } },
    ...{ kind: { type: 'b', b: 7 }, both: { q: 8, s: 9 } },
  });
  assert.deepEqual(await errorsOf(t, withConfig({ max: null }), given), [
    'settings.plugins[0].config.max: expected an integer, found nothing',
  ]);
});

test('an operator may own keys beside those of the built-ins', async (t) => {
  const key = configKey('server', 'rateLimit.extra', Type.Optional(Type.Boolean()));
  const extra: Definition = { name: 'extra', keys: [key], setup: () => ({}) };
  const loaded = await load(t, config({ server: { rateLimit: { max: 1, extra: true } } }), {
    builtins: [...builtins, extra],
  });
  assert.equal(key.in(loaded.config), true);
});
