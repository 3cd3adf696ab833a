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

test('an ES module in a folder without a package.json, and one made by a compiler, work', async (t) => {
  const files = {
    'esm.js': 'export default { name: "esm", hooks: {} }; export const x = 1;',
    'compiled.js':
      'Object.defineProperty(exports, "__esModule", { value: true }); exports.default = { name: "compiled", hooks: {} };',
  };
  const loaded = await load(t, withPlugins({ source: './esm.js' }, { source: './compiled.js' }), { files });
  assert.deepEqual(
    operators(loaded).map(({ definition }) => definition.name),
    ['esm', 'compiled'],
  );
});

test('an absolute path works', async (t) => {
  const dir = await folder(t, { 'a.mjs': simple });
  assert.equal(operators(await load(t, withPlugins({ source: join(dir, 'a.mjs') })))[0]?.definition.name, 'audit');
});

const pkg = (exports: unknown) => JSON.stringify({ name: 'p', type: 'module', exports });
const plugin = (name: string) => `export default { name: "${name}", hooks: {} };`;
const packages = {
  'node_modules/esm-only/package.json': pkg({ '.': { types: './x.d.ts', import: './main.js' }, './sub': './sub.js' }),
  'node_modules/esm-only/main.js': plugin('esm-only'),
  'node_modules/esm-only/sub.js': plugin('sub'),
  'node_modules/@scope/short/package.json': pkg('./short.js'),
  'node_modules/@scope/short/short.js': plugin('short'),
  'node_modules/both/package.json': pkg({ require: './cjs.cjs', node: { import: ['./esm.js'] } }),
  'node_modules/both/cjs.cjs': 'throw new Error("the wrong one")',
  'node_modules/both/esm.js': plugin('both'),
  'node_modules/old/package.json': JSON.stringify({ main: 'lib/old' }),
  'node_modules/old/lib/old.js': 'module.exports = { name: "old", hooks: {} };',
};

test('a package is found from the folder of the config file', async (t) => {
  const sources = ['esm-only', 'esm-only/sub', '@scope/short', 'both', 'old'];
  const loaded = await load(t, withPlugins(...sources.map((source) => ({ source }))), { files: packages });
  assert.deepEqual(
    operators(loaded).map(({ definition, source }) => [definition.name, source]),
    [
      ['esm-only', 'esm-only'],
      ['sub', 'esm-only/sub'],
      ['short', '@scope/short'],
      ['both', 'both'],
      ['old', 'old'],
    ],
  );
});

test('a module that cannot be loaded is one line that names the source', async (t) => {
  const files = {
    'syntax.mjs': 'export default {',
    'syntax.ts': 'export default {',
    'import.mjs': 'import "./nowhere.mjs";',
  };
  for (const name of ['syntax.mjs', 'syntax.ts', 'import.mjs']) {
    const errors = await errorsOf(t, withPlugins({ source: `./${name}` }), { files });
    assert.equal(errors.length, 1);
    assert.match(
      errors[0] ?? '',
      new RegExp(`^settings\\.plugins\\[0\\]\\.source: plugin "\\./${name}": cannot be loaded: .+`),
    );
  }
});

test('hooks of a plugin, and of a factory, are what its setup returns', async (t) => {
  const plain = behaviourOf(await loadOne(t, 'export default { name: "a", hooks: { onError() { return 1; } } };'));
  assert.deepEqual(Object.keys(plain?.hooks ?? {}), ['onError']);
  const made = await loadOne(t, 'export default async (config) => ({ name: config.name, hooks: { onError() {} } });', {
    config: { name: 'from config' },
  });
  assert.equal(operators(made)[0]?.definition.name, 'from config');
  assert.deepEqual(Object.keys(behaviourOf(made)?.hooks ?? {}), ['onError']);
});

test('a factory is called once, with a config that it may change, or an empty one', async (t) => {
  const code = `
    let calls = 0;
    export default (config) => { config.extra = 1; return { name: 'calls-' + ++calls + JSON.stringify(config).replaceAll('"', ''), hooks: {} }; };
  `;
  assert.equal(operators(await loadOne(t, code, { config: { a: 1 } }))[0]?.definition.name, 'calls-1{a:1,extra:1}');
  assert.equal(operators(await loadOne(t, code))[0]?.definition.name, 'calls-1{extra:1}');
});

test('a plugin with setup keeps everything, and its keys are part of the schema', async (t) => {
  const code = `
    const schema = { type: 'integer', minimum: 1 };
    export default {
      name: 'full', budget: 50, keys: [{ level: 'endpoint', path: 'weight', schema }],
      configSchema: { type: 'object', properties: { level: { enum: ['low', 'high'] } }, required: ['level'] },
      setup(services, config) { return { hooks: {}, routes: [], config }; },
    };`;
  const errors = await errorsOfOne(t, code, { config: { level: 'lo' } });
  assert.deepEqual(errors, [
    'settings.plugins[0].config.level: expected one of "low", "high", did you mean "low"?',
    'apis[0].endpoints[0].weight: required key is missing',
  ]);
  const endpoints = [{ name: 'a', path: '/a', weight: 1 }];
  const given = config({
    settings: { plugins: [{ source: './p.mjs', config: { level: 'low' } }] },
    apis: [api({ endpoints })],
  });
  const loaded = await load(t, given, { files: { 'p.mjs': code } });
  const [choice] = operators(loaded);
  assert.equal(choice?.budget, 50);
  assert.deepEqual(choice?.config, { level: 'low' });
  assert.deepEqual(behaviourOf(loaded), { hooks: {}, routes: [], config: { level: 'low' } });
});

test('timeouts are the budget', async (t) => {
  const loaded = await load(
    t,
    withPlugins({ source: './p.mjs', timeout: 7 }, { source: 'builtin:cache', timeout: 8 }),
    {
      files: { 'p.mjs': simple },
    },
  );
  assert.equal(operators(loaded)[0]?.budget, 7);
  assert.equal(loaded.plugins.find(({ source }) => source === 'builtin:cache')?.budget, 8);
  const variable = await loadOne(t, simple, { timeout: '${T}' }, { env: { T: '9' } });
  assert.equal(operators(variable)[0]?.budget, 9);
});

const factory =
  'export default (config) => ({ name: JSON.stringify(config).replaceAll(/["\\\\]/g, "\'"), hooks: {} });';

test('a JSON Schema of the config: defaults, variables, errors by path', async (t) => {
  const code = `
    export const configSchema = {
      type: 'object',
      properties: { url: { type: 'string' }, retries: { type: 'integer' }, nested: { type: 'object', properties: { on: { type: 'boolean' } } } },
      required: ['url'],
    };
    ${factory}`;
  const loaded = await loadOne(
    t,
    code,
    { config: { url: '${U}', retries: '${N}', nested: { on: '${B}' } } },
    {
      env: { U: '1', N: '2', B: 'true' },
    },
  );
  assert.deepEqual(operators(loaded)[0]?.config, { url: '1', retries: 2, nested: { on: true } });
  assert.equal(operators(loaded)[0]?.definition.name, "{'url':'1','retries':2,'nested':{'on':true}}");
  assert.deepEqual(await errorsOfOne(t, code, { config: { urll: 'x', retries: 'many', nested: { onn: true } } }), [
    'settings.plugins[0].config.url: required key is missing',
    'settings.plugins[0].config.urll: unknown key, did you mean "url"?',
    'settings.plugins[0].config.retries: expected an integer, found a string',
    'settings.plugins[0].config.nested.onn: unknown key, did you mean "on"?',
  ]);
  assert.deepEqual(await errorsOfOne(t, code), ['settings.plugins[0].config.url: required key is missing']);
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

test('a schema with parse: what it returns is the config, what it throws is the error', async (t) => {
  const code = `
    export const configSchema = { parse(value) {
      if (value.token === undefined) throw Object.assign(new Error('bad'), { issues: [
        { path: ['token'], message: 'Required' }, { path: ['list', 0, 'a b'], message: 'Expected\\nnumber' } ] });
      if (value.token === 'plain') throw new Error('cannot be plain');
      if (value.token === 'hunter2-secret') throw new Error('hunter2-secret is no token');
      return { parsed: value.token };
    } };
    ${factory}`;
  assert.deepEqual(operators(await loadOne(t, code, { config: { token: 't' } }))[0]?.config, { parsed: 't' });
  assert.deepEqual(await errorsOfOne(t, code), [
    'settings.plugins[0].config.token: Required',
    'settings.plugins[0].config.list[0]["a b"]: Expected number',
  ]);
  assert.deepEqual(await errorsOfOne(t, code, { config: { token: 'plain' } }), [
    'settings.plugins[0].config: cannot be plain',
  ]);
  assert.deepEqual(await errorsOfOne(t, code, { config: { token: '${S}' } }, { env: { S: 'hunter2-secret' } }), [
    'settings.plugins[0].config: *** is no token',
  ]);
});

test('a configSchema that cannot be used is an error', async (t) => {
  const [error, ...more] = await errorsOfOne(
    t,
    `export const configSchema = { type: 'object', properties: { a: { type: 'string', pattern: '(' } } }; ${factory}`,
    { config: { a: 'x' } },
  );
  assert.match(error ?? '', /^settings\.plugins\[0\]\.config: the plugin's configSchema cannot be used: .+$/);
  assert.deepEqual(more, []);
});

test('built-ins are configured, left out, and nothing else', async (t) => {
  const { plugins, config: loaded } = await load(t, withPlugins({ source: 'builtin:cache', enabled: false }));
  assert.ok(!plugins.some(({ definition }) => definition.name === 'cache'));
  assert.ok(loaded.settings);
});

test('a plugin may have the name of a built-in one that is left out', async (t) => {
  const files = {
    'cache.mjs': 'export default { name: "cache", hooks: {} };',
  };
  const replaced = withPlugins({ source: 'builtin:cache', enabled: false }, { source: './cache.mjs' });
  assert.equal(operators(await load(t, replaced, { files }))[0]?.definition.name, 'cache');
});

test('the source may come from a variable', async (t) => {
  const loaded = await load(t, withPlugins({ source: './${NAME}.mjs' }), {
    files: { 'x.mjs': simple },
    env: { NAME: 'x' },
  });
  assert.equal(operators(loaded)[0]?.source, './x.mjs');
});

test('an operator may own keys beside those of the built-ins', async (t) => {
  const key = configKey('server', 'rateLimit.extra', Type.Optional(Type.Boolean()));
  const extra: Definition = { name: 'extra', keys: [key], setup: () => ({}) };
  const loaded = await load(t, config({ server: { rateLimit: { max: 1, extra: true } } }), {
    builtins: [...builtins, extra],
  });
  assert.equal(key.in(loaded.config), true);
});
