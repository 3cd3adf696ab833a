/** Plugins are files that the config names, and a bad one stops the start. */

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { loadObject } from '../support/config.ts';
import { assertRefused } from '../support/http.ts';
import { notes, pluginFile, pluginTools } from '../support/plugin-files.ts';
import { serviceFor, startTestService } from '../support/service.ts';
import { startUpstream } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

const SDK = new URL('../../plugins-sdk/index.ts', import.meta.url).href;

const apis = (url: string, members: object = {}) => {
  const endpoints = [{ name: 'raw', path: '/raw', parameters: [{ name: 'q' }], ...members }];
  return [{ name: 'x', url, auth: { type: 'free' }, endpoints }];
};
/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:1';

describe('plugins are files that settings.plugins names', async () => {
  const files = {
    'object.mjs': pluginFile('object', `onHttpRequest({ parameters }) { note('ran', 'object'); }`),
    'factory.js': `${pluginTools}
      export default (config) => ({ name: config.name, hooks: { onHttpRequest() { note('ran', config.name); } } });`,
    'later.mjs': `${pluginTools}
      export default async (config) => { await sleep(1); note('config', config); return { name: 'later', hooks: {} }; };`,
    'typed.mts': `import { definePlugin, Type } from '${SDK}';
      import type { HttpRequestContext } from '${SDK}';
      export const configSchema = Type.Object({ deny: Type.Array(Type.String()), status: Type.Integer({ default: 418 }) });
      interface Config { readonly deny: readonly string[]; readonly status: number }
      const make = (config: Config) => ({
        name: 'typed',
        hooks: {
          onHttpRequest({ parameters }: HttpRequestContext) {
            if (config.deny.includes(String(parameters['q']))) return { reject: true, status: config.status, message: 'Denied' };
          },
        },
      });
      export default make;`,
    'plain.mjs': `
      export const configSchema = { type: 'object', properties: { deny: { default: 'plain' }, status: { default: 451 } } };
      export default ({ deny, status }) => ({
        name: 'plain',
        hooks: {
          onHttpRequest({ parameters }) {
            if (parameters.q === deny) return { reject: true, status, message: 'By default' };
          },
        },
      });`,
    'parsed.ts': `
      export const configSchema = { parse(value: { level?: number }) { return { level: (value.level ?? 1) * 2 }; } };
      export default (config: { level: number }) => ({
        name: 'parsed',
        hooks: { onAfterApiCall({ response }: { response: { data: object } }) { return { data: { ...response.data, ...config } }; } },
      });`,
    'by-name.ts': `import { digits } from './by-name-part.ts';
      export default { name: 'by-name', hooks: { onHttpRequest() { globalThis.testNote('ran', digits); } } };`,
    'by-name-part.ts': `import { isHex } from 'signed-data-proxy/plugins-sdk';
      export const digits: string = 'by-name ' + isHex('0x00');`,
    'full.mjs': `import { definePlugin } from '${SDK}';
      const note = globalThis.testNote;
      export default definePlugin({
        name: 'full',
        setup: ({ endpoints }) => ({
          start: () => note('full', 'start'),
          stop: (deadline) => note('full', 'stop ' + (deadline > 0)),
          hooks: { onHttpRequest: () => note('ran', 'full ' + endpoints.length) && undefined },
        }),
      });`,
  };

  const upstream = await startUpstream();
  upstream.json('/raw', { a: 1 });
  const plugins = [
    { source: './object.mjs' },
    { source: './factory.js', config: { name: 'made' } },
    { source: './later.mjs', config: { nested: [{ key: 'value' }], from: `\${GREETING}, world` } },
    { source: './typed.mts', config: { deny: ['bad', `\${DENIED}`] } },
    { source: './parsed.ts', config: { level: 21 } },
    { source: './full.mjs' },
    { source: './by-name.ts' },
    { source: './plain.mjs' },
  ];
  const service = await startTestService(
    { settings: { plugins }, apis: apis(upstream.url) },
    { files, env: { GREETING: 'hello', DENIED: 'worse' } },
  );

  after(async () => {
    await service.stop();
    assert.deepEqual(notes.of('full'), ['start', 'stop true']);
    await upstream.close();
  });

  it('of every form and extension, in the order of the config', async () => {
    const { rawData } = await verifyRaw(await service.post('x/raw'), service.signer.address);
    assert.deepEqual(rawData, { a: 1, level: 42 });
    assert.deepEqual(notes.of('ran'), ['object', 'made', 'full 1', 'by-name true']);
    assert.deepEqual(notes.of('full'), ['start']);
  });

  it('with their config, variables replaced and defaults of the schema filled in', async () => {
    assert.deepEqual(notes.of('config'), [{ nested: [{ key: 'value' }], from: 'hello, world' }]);
    await assertRefused(await service.post('x/raw', { q: 'bad' }), 418, 'Denied');
    await assertRefused(await service.post('x/raw', { q: 'worse' }), 418, 'Denied');
    await assertRefused(await service.post('x/raw', { q: 'plain' }), 451, 'By default');
  });

  it('and those that can change what gets signed are named by a start-up warning', () => {
    const warnings = service.logs.filter(({ level }) => level === 'warn').map(({ message }) => message);
    const ours = warnings.filter((message) => message.includes('settings.plugins'));
    assert.deepEqual(ours, ['settings.plugins[4]: plugin "parsed" can change what gets signed (onAfterApiCall)']);
  });
});

describe('a plugin may use the SDK whatever its extension, in a folder without a package.json', () => {
  for (const extension of ['ts', 'mts', 'js', 'mjs']) {
    it(`.${extension}`, async (t) => {
      const text = `import { Refusal, definePlugin } from '${SDK}';
        export default definePlugin({ name: 'p', setup: () => ({ hooks: { authenticate: { free: () => { throw new Refusal(418, 'Closed'); } } } }) });`;
      const plugins = [{ source: 'builtin:auth-free', enabled: false }, { source: `./p.${extension}` }];
      const config = { settings: { plugins }, apis: apis(NOWHERE).map(({ auth: _, ...api }) => api) };
      const service = await serviceFor(t, config, { files: { [`p.${extension}`]: text } });
      await assertRefused(await service.post('x/raw'), 418, 'Closed');
    });
  }
});

describe('a plugin in doubt stops start-up', () => {
  interface Start {
    readonly config?: object;
    readonly without?: string;
    readonly endpoint?: object;
  }
  type Faults = Readonly<Record<string, readonly [text: string, expected: RegExp | string, start?: Start]>>;
  const files: Faults = {
    'throws while it is loaded': ['throw new Error("no\\nway");', /settings\.plugins\[0\]\.source: .*p\.mjs.*no/],
    'throws an error that cannot be shown': [
      'throw Object.assign(new Error(), { toString() { throw 1; } });',
      /plugin "\.\/p\.mjs": cannot be loaded: Error$/,
    ],
    'throws an error whose message is no text': [
      'throw Object.assign(new Error(), { message: undefined });',
      /plugin "\.\/p\.mjs": cannot be loaded: Error$/,
    ],
    'is no JavaScript': [
      'export default {\n  name: "p" hooks: {} };',
      /plugin "\.\/p\.mjs": cannot be loaded: Expected "\}" but found "hooks" \(p\.mjs:2\)$/,
    ],
    'has no default export': ['export const name = 1;', /no default export/],
    'dislikes its config': [
      `export const configSchema = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] };
        export default (config) => ({ name: 'p', hooks: {} });`,
      /settings\.plugins\[0\]\.config/,
      { config: { ulr: 'x' } },
    ],
  };
  const exported: Faults = {
    'is neither object nor factory': ['7', /must be \{name, hooks\}/],
    'has no name': ['{ hooks: {} }', /"name"/],
    'is a promise': [
      '(async () => ({ name: "p", hooks: {} }))()',
      /: the default export is a promise: export a function that returns it$/,
    ],
    'has a factory that throws': ['() => { throw new Error("out of order"); }', /out of order/],
    'has a factory that makes nothing': ['() => undefined', /must be \{name, hooks\}/],
    'has the name of a built-in': ['{ name: "cache", hooks: {} }', /"cache" is that of a built-in/],
    'exports a factory of a plugin that has no need of one': [
      '(config) => ({ name: "p", setup: () => ({}) })',
      'settings.plugins[0].source: plugin "./p.mjs": its factory returns a plugin with "setup": export that plugin itself, with "configSchema" in it, and "setup" gets the config as its second argument',
    ],
  };
  const AT = 'settings.plugins[0] (line 4): plugin "p": ';
  const without = 'sign-eip191';
  /** Of a plugin with the name `p`, its other members. */
  const members: Faults = {
    'has a hook that does not exist': ['hooks: { onBeforeSing() {} }', /unknown hook "onBeforeSing".*onBeforeSign/],
    'has its only hook beside "hooks"': [
      'onHttpRequest() {}',
      /: the default export, without "setup", has an unknown member "onHttpRequest", known: name, hooks, credentials$/,
    ],
    'has a member that no plugin has': [
      'version: "2", setup: () => ({})',
      /: the default export: version: unknown key, known keys: name, .*, openapi, setup$/,
    ],
    'has a hook that is no function': ['hooks: { onBeforeSign: 1 }', /"onBeforeSign" must be a function/],
    'throws an error without a text': [
      'setup() { throw new RangeError(); }',
      /: plugin "p" of \.\/p\.mjs cannot be set up: RangeError$/,
    ],
    'takes no config': ['hooks: {}', /settings\.plugins\[0\]\.config: .*takes no config/, { config: { a: 1 } }],
    'has an auth type that it does not check': [
      'auth: { t: {} }, setup: () => ({})',
      `${AT}"auth" has "t", which no plugin checks in "hooks.authenticate"`,
      { endpoint: { auth: { type: 't' } } },
    ],
    'has a mode that it does not present': [
      'modes: ["m"], setup: () => ({})',
      `${AT}"modes" has "m", which no plugin delivers in "hooks.present"`,
      { endpoint: { mode: 'm' } },
    ],
    'has no address for its signatures': [
      'signerAddress: () => "0x1", setup: () => ({})',
      `${AT}"signerAddress" returned no address`,
      { without },
    ],
    'signs beside the built-in plugin that does': [
      'signerAddress: () => "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf", setup: () => ({})',
      'plugins "sign-eip191" and "p" both sign for all endpoints: leave one out',
    ],
  };
  /** Of a plugin with the name `p`, what its `setup` returns. */
  const returned: Faults = {
    'observes what there is not': [
      'observe: { stages() {} }',
      /"observe" has an unknown member "stages", did you mean "stage"\?$/,
    ],
    'observes by nothing': ['observe: null', /: what "setup" returned: observe: expected a mapping, found nothing$/],
    'observes by no function': [
      'observe: { stage: 1 }',
      /: what "setup" returned: observe\.stage: expected a function, found a number$/,
    ],
    'returns what there is not': ['hook: {}', /: what "setup" returned: hook: unknown key, did you mean "hooks"\?$/],
    'signs and does not say by which address': [
      'hooks: { sign: () => undefined }',
      'nothing signs answers: the built-in signer cannot be left out without another plugin that has "signerAddress"',
      { without },
    ],
  };
  const start = (plugins: object[], files: Record<string, string>, endpoint?: object, env = {}) =>
    startTestService({ settings: { plugins }, apis: apis(NOWHERE, endpoint) }, { files, env });

  const forms: [Faults, (text: string) => string][] = [
    [files, (text) => text],
    [exported, (value) => `export default ${value};`],
    [members, (text) => `export default { name: "p", ${text} };`],
    [returned, (text) => `export default { name: "p", setup: () => ({ ${text} }) };`],
  ];
  for (const [faults, fileOf] of forms) {
    for (const [what, [text, expected, { config, without, endpoint } = {}]] of Object.entries(faults)) {
      it(`one that ${what}`, async () => {
        const plugins = [{ source: './p.mjs', ...(config && { config }) }];
        const left = without === undefined ? [] : [{ source: `builtin:${without}`, enabled: false }];
        const starting = start([...plugins, ...left], { 'p.mjs': fileOf(text) }, endpoint);
        await assert.rejects(starting, ({ message }) => {
          if (typeof expected === 'string') assert.equal(message, expected);
          else assert.match(message, expected);
          assert.doesNotMatch(message, /\n {4}at /);
          return true;
        });
      });
    }
  }

  it('one whose setup returns what cannot be right: with the place in the file, and the nearest name', async () => {
    const hooks =
      'admit, resolve, parseBody, onHttpRequest, price, authenticate, validate, prepare, present, answer, onBeforeApiCall, callApi, onAfterApiCall, encode, encrypt, onBeforeSign, statements, sign, attest, approve, concluded, respond, onResponseSent, onError';
    const made = 'what "setup" returned: ';
    const cases: readonly [string, string][] = [
      ['hooks: { onbeforesign() {} }', `${made}hooks.onbeforesign: unknown key, did you mean "onBeforeSign"?`],
      ['hooks: { toString() {} }', `${made}hooks.toString: unknown key, known keys: ${hooks}`],
      ['hooks: { vary() {} }', `${made}hooks.vary: unknown key here, it belongs at vary`],
      ['hooks: { onError: 1 }', `${made}hooks.onError: expected a function, found a number`],
      ['hooks: { present() {} }', `${made}hooks.present: expected a mapping, found a function`],
      ['hooks: { authenticate: null }', `${made}hooks.authenticate: expected a mapping, found nothing`],
      ['hooks: { authenticate: { t: 1 } }', `${made}hooks.authenticate.t: expected a function, found a number`],
      ['hooks: new (class { onError() {} })()', '"hooks" must be a plain object of functions'],
      ['hooks: []', '"hooks" must be a plain object of functions'],
      ['onError() {}', `${made}onError: unknown key here, it belongs at hooks.onError`],
      ['varry() {}', `${made}varry: unknown key, did you mean "vary"?`],
      ['vary: "text"', `${made}vary: expected a function, found a string`],
      ['start: {}', `${made}start: expected a function, found a mapping`],
      ['stop: 1', `${made}stop: expected a function, found a number`],
    ];
    for (const [given, why] of cases) {
      const text = `export default { name: 'full', setup: () => ({ ${given} }) };`;
      const message = `settings.plugins[1] (line 5): plugin "full" of ./p.mjs cannot be set up: ${why}`;
      await assert.rejects(start([{ source: 'builtin:cache' }, { source: './p.mjs' }], { 'p.mjs': text }), { message });
    }
  });

  it('one that is not there, and two of one name', async () => {
    await assert.rejects(start([{ source: './none.mjs' }], {}), /settings\.plugins\[0\]\.source: .*no such file/);
    const files = { 'a.mjs': pluginFile('same', ''), 'b.mjs': pluginFile('same', '') };
    const twice = start([{ source: './a.mjs' }, { source: './b.mjs' }], files);
    await assert.rejects(twice, /settings\.plugins\[1\].*"same"/);
  });

  it('what a plugin throws shows no value of a variable, wherever it does', async () => {
    const secret = 'postgres://user:hunter22@db';
    const thrower = (where: string) => `const fail = (dsn) => { throw new Error('cannot reach ' + dsn); };
      export default { name: 'leak', configSchema: { type: 'object' }, setup: (_, { dsn }) => {
        if (${where === 'setup'}) fail(dsn);
        return {
          start() { if (${where === 'start'}) fail(dsn); },
          hooks: { onHttpRequest() { fail(dsn); }, onError() { fail(dsn); } },
        };
      } };`;
    const plugins = [{ source: './leak.mjs', config: { dsn: `\${DSN}` } }];
    const startWith = (where: string) => start(plugins, { 'leak.mjs': thrower(where) }, {}, { DSN: secret });
    await assert.rejects(startWith('setup'), {
      message: 'settings.plugins[0] (line 4): plugin "leak" of ./leak.mjs cannot be set up: cannot reach ***',
    });
    await assert.rejects(startWith('start'), { message: 'plugin "leak" cannot start: cannot reach ***' });
    const running = await startWith('hook');
    await assertRefused(await running.post('x/raw'), 403, 'Request dropped by plugin "leak"');
    await eventually(() => running.logs.find(({ message }) => /failed in onError/.test(message)), 'the complaint');
    assert.equal(JSON.stringify(running.logs).includes('hunter22'), false);
    await running.stop();
  });

  it('an unknown built-in and one that cannot be left out', async () => {
    const load = (plugin: object) => loadObject({ settings: { plugins: [plugin] }, apis: apis(NOWHERE) });
    await assert.rejects(load({ source: 'builtin:cahce' }), /unknown built-in plugin "cahce".*cache/);
    for (const name of ['parameters', 'encode-raw', 'mode-sync'])
      await assert.rejects(load({ source: `builtin:${name}`, enabled: false }), /cannot be left out/);
    const needed: [string, RegExp][] = [
      ['sign-eip191', /^Error: nothing signs answers/],
      ['request-body', /no plugin provides "parseBody", without which nothing can be served/],
      ['endpoints', /no plugin provides "resolve", without which nothing can be served/],
    ];
    for (const [name, why] of needed)
      await assert.rejects(start([{ source: `builtin:${name}`, enabled: false }], {}), why);
    await load({ source: 'builtin:cache', enabled: false });
    await assert.rejects(load({ source: './p.mjs', timeout: 0 }), /settings\.plugins\[0\]\.timeout/);
  });
});
