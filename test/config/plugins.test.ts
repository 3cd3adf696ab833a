/** Plugins are loaded in order, and a bad one says what is wrong with it. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { LoadedConfig } from '../../config/index.ts';
import { configKey, Type } from '../../plugins-sdk/config-key.ts';
import type { Definition } from '../../plugins-sdk/define.ts';
import { idleServices } from '../support/services.ts';
import { api, builtins, config, errorsOf, folder, type Given, load } from './support.ts';

const simple = 'export default { name: "audit", hooks: { onError() {} } };';

function withPlugins(...plugins: unknown[]): Record<string, unknown> {
  return config({ settings: { plugins } });
}

/** Loads a config whose one plugin is `p.mjs`. */
function loadOne(t: TestContext, code: string, entry: object = {}, given: Given = {}): Promise<LoadedConfig> {
  return load(t, withPlugins({ source: './p.mjs', ...entry }), { files: { 'p.mjs': code }, ...given });
}

function errorsOfOne(t: TestContext, code: string, entry: object = {}, given: Given = {}): Promise<string[]> {
  return errorsOf(t, withPlugins({ source: './p.mjs', ...entry }), { files: { 'p.mjs': code }, ...given });
}

function operators({ plugins }: LoadedConfig) {
  return plugins.filter(({ operator }) => operator);
}

/** What the plugin's `setup` returns. */
function behaviourOf(loaded: LoadedConfig, index = 0) {
  const choice = operators(loaded)[index];
  return choice?.definition.setup(idleServices(), choice.config);
}

test('built-ins come first in their own order, operators in the order of the config', async (t) => {
  const files = {
    'plugins/one.ts': 'type A = string; const name: A = "one"; export default { name, hooks: {} };',
    'two.mts': 'export default { name: "two", hooks: {} };',
    'three.js': 'export default { name: "three", hooks: {} };',
    'four.mjs': 'export default { name: "four", hooks: {} };',
    'five.js': 'module.exports = { name: "five", hooks: {} };',
  };
  const sources = ['plugins/one.ts', './two.mts', './three.js', './four.mjs', './five.js'];
  const { plugins } = await load(t, withPlugins(...sources.map((source) => ({ source }))), { files });
  assert.deepEqual(
    plugins.map(({ definition, source, operator, budget }) => [definition.name, source, operator, budget]),
    [
      ['limits', 'builtin:limits', false, 'none'],
      ['access', 'builtin:access', false, 1000],
      ['upstream', 'builtin:upstream', false, 1000],
      ['parameters', 'builtin:parameters', false, 1000],
      ['cache', 'builtin:cache', false, 1000],
      ['one', 'plugins/one.ts', true, 1000],
      ['two', './two.mts', true, 1000],
      ['three', './three.js', true, 1000],
      ['four', './four.mjs', true, 1000],
      ['five', './five.js', true, 1000],
    ],
  );
});

test('an absolute path works', async (t) => {
  const dir = await folder(t, { 'a.mjs': simple });
  assert.equal(operators(await load(t, withPlugins({ source: join(dir, 'a.mjs') })))[0]?.definition.name, 'audit');
});

test('hooks of a plugin, and of a factory, are what its setup returns', async (t) => {
  const plugin = '{ name: "a", hooks: { onError() { return 1; } } }';
  for (const code of [`export default ${plugin};`, `export default async () => (${plugin});`])
    assert.deepEqual(Object.keys(behaviourOf(await loadOne(t, code))?.hooks ?? {}), ['onError']);
});

test('a plugin with setup keeps everything, and its keys are part of the schema', async (t) => {
  const code = `
    const schema = { type: 'integer', minimum: 1 };
    export default {
      name: 'full', budget: 50, keys: [{ level: 'endpoint', path: 'weight', schema }],
      configSchema: { type: 'object', properties: { level: { enum: ['low', 'high'] } }, required: ['level'] },
      setup(services, config) { return { hooks: {}, routes: [], config }; },
    };`;
  const endpoints = [{ name: 'a', path: '/a', weight: 1 }];
  const given = config({
    settings: { plugins: [{ source: './p.mjs', config: { level: 'low' } }] },
    apis: [api({ endpoints })],
  });
  const loaded = await load(t, given, { files: { 'p.mjs': code } });
  const [choice] = operators(loaded);
  const level = { level: 'low' };
  assert.deepEqual([choice?.budget, choice?.config], [50, level]);
  assert.deepEqual(behaviourOf(loaded), { hooks: {}, routes: [], config: level });
});

test('timeouts are the budget', async (t) => {
  const both = withPlugins({ source: './p.mjs', timeout: 7 }, { source: 'builtin:cache', timeout: 8 });
  const loaded = await load(t, both, { files: { 'p.mjs': simple } });
  assert.equal(operators(loaded)[0]?.budget, 7);
  assert.equal(loaded.plugins.find(({ source }) => source === 'builtin:cache')?.budget, 8);
  const variable = await loadOne(t, simple, { timeout: '${T}' }, { env: { T: '9' } });
  assert.equal(operators(variable)[0]?.budget, 9);
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
  const configOf = async (config?: object) => operators(await loadOne(t, code, config && { config }))[0]?.config;
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
  assert.deepEqual(await errorsOfOne(t, code, { config: { max: null } }), [
    'settings.plugins[0].config.max: expected an integer, found nothing',
  ]);
});

test('built-ins are configured, left out, and nothing else', async (t) => {
  const { plugins, config: loaded } = await load(t, withPlugins({ source: 'builtin:cache', enabled: false }));
  assert.ok(!plugins.some(({ definition }) => definition.name === 'cache'));
  assert.ok(loaded.settings);
});

test('an operator may own keys beside those of the built-ins', async (t) => {
  const key = configKey('server', 'rateLimit.extra', Type.Optional(Type.Boolean()));
  const extra: Definition = { name: 'extra', keys: [key], setup: () => ({}) };
  const loaded = await load(t, config({ server: { rateLimit: { max: 1, extra: true } } }), {
    builtins: [...builtins, extra],
  });
  assert.equal(key.in(loaded.config), true);
});
