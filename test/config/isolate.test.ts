/** A plugin in a process of its own is loaded and refused as one beside the service. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { config, errorsOf, folder, type Given, load, warningsOf } from './support.ts';

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

test('the wait for a file that has no end is 30 seconds', async (t) => {
  const pipe = join(await folder(t), 'pipe.mjs');
  execFileSync('mkfifo', [pipe]);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const beforePlugin = () => {
    const ticking = setInterval(() => t.mock.timers.tick(30_000), 1);
    t.after(() => clearInterval(ticking));
  };
  assert.deepEqual(await errors(t, `import "${pipe}";${simple}`, { isolate: true }, { beforePlugin }), [
    `${AT}.source: plugin "./p.mjs": cannot be bundled: is not ready after 30000 ms`,
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
