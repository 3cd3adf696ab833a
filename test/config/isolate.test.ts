/** A plugin in a process of its own is loaded and refused as one beside the service. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { config, errorsOf, type Given, load, warningsOf } from './support.ts';

const AT = 'settings.plugins[0]';

function errors(t: TestContext, code: string, entry: object = {}, given: Given = {}): Promise<string[]> {
  const block = config({ settings: { plugins: [{ source: './p.mjs', ...entry }] } });
  return errorsOf(t, block, { files: { 'p.mjs': code, ...given.files }, ...given });
}

const simple = 'export default { name: "p", hooks: { onError() {} } };';
const factory = 'export default () => ({ name: "p", hooks: {} });';
const schema = `export const configSchema = {
  type: 'object',
  properties: { max: { type: 'integer', minimum: 1 }, inner: { type: 'object', properties: { a: { type: 'string' } } } },
  required: ['max'],
};`;
const typed = `import { Type } from 'signed-data-proxy/plugins-sdk';
export const configSchema = Type.Object({ max: Type.Integer({ minimum: 1 }), name: Type.Optional(Type.String()) });`;
const parser = `export const configSchema = { parse(value) {
  if (value.max > 9) throw Object.assign(new Error('no'), { issues: [{ path: ['list', 0, 'max'], message: 'too many' }] });
  if (value.max < 1) throw new RangeError('too few');
  return new Map(Object.entries(value));
} };`;

/** What is wrong is said in the same words, wherever the plugin would run. */
const faults: Readonly<Record<string, [code: string, entry?: object, given?: Given]>> = {
  'no default export': ['export const a = 1;'],
  'a text': ['export default "text";'],
  'a list': ['export default [];'],
  'a class': ['export default class A {};'],
  'no name': ['export default { hooks: {} };'],
  'an unknown member': ['export default { name: "p", hook: {}, hooks: {} };'],
  'an unknown hook': ['export default { name: "p", hooks: { onHttpRequests() {} } };'],
  'an inner hook': ['export default { name: "p", hooks: { sign() {} } };'],
  'a hook that is no function': ['export default { name: "p", hooks: { onError: 1 } };'],
  'what its factory returns': ['export default () => ({ name: "p" });'],
  'what its factory throws': ['export default () => { throw new Error("not like this"); };'],
  'what its factory rejects with': ['export default async () => { throw "late"; };'],
  'what its module throws': ['throw new TypeError("at once"); export default 1;'],
  'config that it does not take': [simple, { config: { a: 1 } }],
  'config that does not fit': [`${schema}${factory}`, { config: { max: 0, inner: { a: 1 }, other: 2 } }],
  'config that is missing': [`${schema}${factory}`],
  'config that does not fit TypeBox': [`${typed}${factory}`, { config: { max: 'a', name: 1, other: 2 } }],
  'config that does not pass a parser': [`${parser}${factory}`, { config: { max: 10 } }],
  'config that a parser throws at': [`${parser}${factory}`, { config: { max: 0 } }],
  'a schema that is none': [`export const configSchema = 5;${factory}`],
  'keys that are none': [`export const keys = { a: 1 };${simple}`],
  'a secret in an error': [
    'export default ({ token }) => { throw new Error("bad token " + token); };',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
    { config: { token: '${TOKEN}' } },
    { env: { TOKEN: 'very-secret' } },
  ],
};

for (const [what, [code, entry, given]] of Object.entries(faults)) {
  test(`${what}: the same error as in the process of the service`, async (t) => {
    const here = await errors(t, code, entry, given);
    assert.ok(here.length > 0);
    assert.deepEqual(await errors(t, code, { ...entry, isolate: true }, given), here);
  });
}

const only: Readonly<Record<string, [code: string, error: string, given?: Given]>> = {
  'a plugin with setup': [
    'export default { name: "p", setup: () => ({}) };',
    'plugin "./p.mjs": has "setup" and cannot be isolated: what it sets up works inside the service; only the six hooks can be called in a process of their own',
  ],
  'a class with setup': [
    'class P { name = "p"; setup() { return {}; } } export default new P();',
    'plugin "./p.mjs": has "setup" and cannot be isolated: what it sets up works inside the service; only the six hooks can be called in a process of their own',
  ],
  'a native addon that it imports': [
    `import addon from './addon.node'; ${simple}`,
    'plugin "./p.mjs": uses the native addon addon.node and cannot be isolated: the process of an isolated plugin may load none',
    { files: { 'addon.node': '' } },
  ],
  'a native addon that it loads': [
    `process.dlopen({ exports: {} }, '/tmp/addon.node'); ${simple}`,
    'plugin "./p.mjs": uses a native addon and cannot be isolated: the process of an isolated plugin may load none',
  ],
  'a module that is not there': [
    `import './none.mjs'; ${simple}`,
    'plugin "./p.mjs": cannot be bundled: Could not resolve "./none.mjs" (p.mjs:1)',
  ],
  'what is no JavaScript': [
    'export default {',
    'plugin "./p.mjs": cannot be bundled: Expected identifier but found end of file (p.mjs:1)',
  ],
  'a module that ends the process': [
    `process.exit(7); ${simple}`,
    'plugin "./p.mjs": its process has ended: it ended with code 7',
  ],
  'a schema with a function': [
    `export const configSchema = { type: 'object', check: () => true };${factory}`,
    'plugin "./p.mjs": its "configSchema" cannot be carried to the service: it has a function',
  ],
};

for (const [what, [code, error, given = {}]] of Object.entries(only)) {
  test(`${what}: an error that says why`, async (t) => {
    const found = await errors(t, code, { isolate: true }, { ...given, files: { ...given.files, 'p.mjs': code } });
    assert.deepEqual(found, [`${AT}.source: ${error}`]);
  });
}

test('a module that never ends is not waited for', async (t) => {
  const found = await errors(t, `for (;;); ${simple}`, { isolate: true }, { patience: 500 });
  assert.deepEqual(found, [`${AT}.source: plugin "./p.mjs": is not ready after 500 ms`]);
});

test('what stands under isolate', async (t) => {
  assert.deepEqual(await errors(t, simple, { isolate: { memory: 96 } }), []);
  assert.deepEqual(await errors(t, simple, { isolate: { memory: 95 } }), [`${AT}.isolate.memory: must be at least 96`]);
  assert.deepEqual(await errors(t, simple, { isolate: 'yes' }), [
    `${AT}.isolate: expected true or false or a mapping, found a string`,
  ]);
});

test('a built-in plugin works inside the service', async (t) => {
  const block = config({ settings: { plugins: [{ source: 'builtin:cache', isolate: true }] } });
  assert.deepEqual(await errorsOf(t, block), [
    `${AT}.isolate: a built-in plugin cannot be isolated: it works inside the service`,
  ]);
});

test('a package that is not isolated is warned of', async (t) => {
  const files = {
    'node_modules/some/package.json': JSON.stringify({ name: 'some', type: 'module', exports: './some.js' }),
    'node_modules/some/some.js': 'export default { name: "some-plugin", hooks: {} };',
    'p.mjs': simple,
  };
  const warnings = async (isolate: boolean) => {
    const plugins = [{ source: 'some', isolate }, { source: 'p.mjs' }];
    return warningsOf(await load(t, config({ settings: { plugins } }), { files }));
  };
  assert.deepEqual(await warnings(false), [
    `${AT}: some-plugin: a package that runs inside the service, where it can read the key; "isolate: true" gives a plugin without "setup" a process of its own`,
  ]);
  assert.deepEqual(await warnings(true), []);
});
