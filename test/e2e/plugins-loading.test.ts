/** Plugins are files that the config names, and a bad one stops the start. */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { loadObject } from '../support/config.ts';
import { assertRefused, eventually } from '../support/http.ts';
import { notes, pluginFile, pluginTools } from '../support/plugin-files.ts';
import { startTestService } from '../support/service.ts';
import { startUpstream } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';

const SDK = new URL('../../plugins-sdk/index.ts', import.meta.url).href;

const withMembers = ({ endpoints }: { endpoints: object[] }, members: object = {}) => ({
  endpoints: endpoints.map((endpoint) => ({ ...endpoint, ...members })),
});

const apis = (url: string) => [
  { name: 'x', url, auth: { type: 'free' }, endpoints: [{ name: 'raw', path: '/raw', parameters: [{ name: 'q' }] }] },
];

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
    assert.deepEqual(
      warnings.filter((message) => message.includes('settings.plugins')),
      ['settings.plugins[4]: plugin "parsed" can change what gets signed (onAfterApiCall)'],
    );
  });
});

describe('a plugin may use the SDK whatever its extension, in a folder without a package.json', () => {
  for (const extension of ['ts', 'mts', 'js', 'mjs']) {
    it(`.${extension}`, async () => {
      const text = `import { Refusal, definePlugin } from '${SDK}';
        export default definePlugin({ name: 'p', setup: () => ({ hooks: { authenticate: { free: () => { throw new Refusal(418, 'Closed'); } } } }) });`;
      const service = await startTestService(
        {
          settings: { plugins: [{ source: 'builtin:auth-free', enabled: false }, { source: `./p.${extension}` }] },
          apis: apis('http://127.0.0.1:1').map(({ auth: _, ...api }) => api),
        },
        { files: { [`p.${extension}`]: text } },
      );
      try {
        await assertRefused(await service.post('x/raw'), 418, 'Closed');
      } finally {
        await service.stop();
      }
    });
  }
});

describe('a plugin in doubt stops start-up', () => {
  const faults: Readonly<
    Record<
      string,
      {
        readonly text: string;
        readonly expected: RegExp;
        readonly config?: object;
        readonly without?: string;
        readonly endpoint?: object;
      }
    >
  > = {
    'throws while it is loaded': {
      text: 'throw new Error("no\\nway");',
      expected: /settings\.plugins\[0\]\.source: .*p\.mjs.*no/,
    },
    'is no JavaScript': {
      text: 'export default {\n  name: "p" hooks: {} };',
      expected: /plugin "\.\/p\.mjs": cannot be loaded: Expected "\}" but found "hooks" \(p\.mjs:2\)$/,
    },
    'has no default export': { text: 'export const name = 1;', expected: /no default export/ },
    'is neither object nor factory': { text: 'export default 7;', expected: /must be \{name, hooks\}/ },
    'has no name': { text: 'export default { hooks: {} };', expected: /"name"/ },
    'has a hook that does not exist': {
      text: 'export default { name: "p", hooks: { onBeforeSing() {} } };',
      expected: /unknown hook "onBeforeSing".*onBeforeSign/,
    },
    'has its only hook beside "hooks"': {
      text: 'export default { name: "p", onHttpRequest() {} };',
      expected: /: the default export has "onHttpRequest", which belongs into "hooks"$/,
    },
    'is a promise': {
      text: 'export default (async () => ({ name: "p", hooks: {} }))();',
      expected: /: the default export is a promise: export a function that returns it$/,
    },
    'has a member that no plugin has': {
      text: 'export default { name: "p", version: "2", setup: () => ({}) };',
      expected: /: the default export: version: unknown key, known keys: name, .*, openapi, setup$/,
    },
    'has a hook that is no function': {
      text: 'export default { name: "p", hooks: { onBeforeSign: 1 } };',
      expected: /"onBeforeSign" must be a function/,
    },
    'has a factory that throws': {
      text: 'export default () => { throw new Error("out of order"); };',
      expected: /out of order/,
    },
    'has a factory that makes nothing': {
      text: 'export default () => undefined;',
      expected: /must be \{name, hooks\}/,
    },
    'has the name of a built-in': {
      text: 'export default { name: "cache", hooks: {} };',
      expected: /"cache" is that of a built-in/,
    },
    'dislikes its config': {
      text: `export const configSchema = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] };
        export default (config) => ({ name: 'p', hooks: {} });`,
      config: { ulr: 'x' },
      expected: /settings\.plugins\[0\]\.config/,
    },
    'observes what there is not': {
      text: 'export default { name: "p", setup: () => ({ observe: { stages() {} } }) };',
      expected: /"observe" has an unknown member "stages", did you mean "stage"\?$/,
    },
    'returns what there is not': {
      text: 'export default { name: "p", setup: () => ({ hook: {} }) };',
      expected: /: what "setup" returned: hook: unknown key, did you mean "hooks"\?$/,
    },
    'delivers a mode that it calls otherwise': {
      text: 'export default { name: "p", modes: ["live"], setup: () => ({ hooks: { present: { liev: () => undefined } } }) };',
      expected: /"hooks\.present" has "liev", which no plugin has in "modes", did you mean "live"\?$/,
    },
    'has an auth type that it does not check': {
      text: 'export default { name: "p", auth: { t: {} }, setup: () => ({}) };',
      endpoint: { auth: { type: 't' } },
      expected:
        /^settings\.plugins\[0\] \(line 4\): plugin "p": "auth" has "t", which no plugin checks in "hooks\.authenticate"$/,
    },
    'checks an auth type that nobody declares': {
      text: 'export default { name: "p", setup: () => ({ hooks: { authenticate: { t: () => true } } }) };',
      expected:
        /^settings\.plugins\[0\] \(line 4\): plugin "p": "hooks\.authenticate" has "t", which no plugin has in "auth"$/,
    },
    'has a mode that it does not present': {
      text: 'export default { name: "p", modes: ["m"], setup: () => ({}) };',
      endpoint: { mode: 'm' },
      expected:
        /^settings\.plugins\[0\] \(line 4\): plugin "p": "modes" has "m", which no plugin delivers in "hooks\.present"$/,
    },
    'delivers a mode that nobody declares': {
      text: 'export default { name: "p", setup: () => ({ hooks: { present: { m: () => undefined } } }) };',
      expected:
        /^settings\.plugins\[0\] \(line 4\): plugin "p": "hooks\.present" has "m", which no plugin has in "modes"$/,
    },
    'has no address for its signatures': {
      text: 'export default { name: "p", signerAddress: () => "0x1", setup: () => ({}) };',
      without: 'sign-eip191',
      expected: /^settings\.plugins\[0\] \(line 4\): plugin "p": "signerAddress" returned no address$/,
    },
    'signs and does not say by which address': {
      text: 'export default { name: "p", setup: () => ({ hooks: { sign: () => undefined } }) };',
      without: 'sign-eip191',
      expected:
        /^nothing signs answers: the built-in signer cannot be left out without another plugin that has "signerAddress"$/,
    },
    'exports a factory of a plugin that has no need of one': {
      text: 'export default (config) => ({ name: "p", setup: () => ({}) });',
      expected:
        /^settings\.plugins\[0\]\.source: plugin "\.\/p\.mjs": its factory returns a plugin with "setup": export that plugin itself, with "configSchema" in it, and "setup" gets the config as its second argument$/,
    },
    'takes no config': {
      text: 'export default { name: "p", hooks: {} };',
      config: { a: 1 },
      expected: /settings\.plugins\[0\]\.config: .*takes no config/,
    },
  };
  const start = (plugins: object[], files: Record<string, string>, endpoint?: object) =>
    startTestService(
      {
        settings: { plugins },
        apis: apis('http://127.0.0.1:1').map((api) => ({ ...api, ...withMembers(api, endpoint) })),
      },
      { files },
    );

  for (const [what, { text, expected, config, without, endpoint }] of Object.entries(faults)) {
    it(`one that ${what}`, async () => {
      await assert.rejects(
        start(
          [
            { source: './p.mjs', ...(config && { config }) },
            ...(without === undefined ? [] : [{ source: `builtin:${without}`, enabled: false }]),
          ],
          { 'p.mjs': text },
          endpoint,
        ),
        ({ message }) => {
          assert.match(message, expected);
          assert.doesNotMatch(message, /\n {4}at /);
          return true;
        },
      );
    });
  }

  it('one whose setup returns what cannot be right: with the place in the file, and the nearest name', async () => {
    const hooks =
      'admit, resolve, parseBody, onHttpRequest, price, authenticate, validate, prepare, present, answer, onBeforeApiCall';
    const more =
      'callApi, onAfterApiCall, encode, encrypt, onBeforeSign, statements, sign, attest, approve, concluded, respond';
    const made = 'what "setup" returned: ';
    const cases: readonly [string, string][] = [
      ['hooks: { onbeforesign() {} }', `${made}hooks.onbeforesign: unknown key, did you mean "onBeforeSign"?`],
      [
        'hooks: { toString() {} }',
        `${made}hooks.toString: unknown key, known keys: ${hooks}, ${more}, onResponseSent, onError`,
      ],
      ['hooks: { vary() {} }', '"hooks" has "vary", which belongs beside it'],
      ['hooks: { onError: 1 }', `${made}hooks.onError: expected a function, found a number`],
      ['hooks: { present() {} }', `${made}hooks.present: expected a mapping, found a function`],
      ['hooks: { authenticate: null }', `${made}hooks.authenticate: expected a mapping, found nothing`],
      ['hooks: { authenticate: { t: 1 } }', `${made}hooks.authenticate.t: expected a function, found a number`],
      ['hooks: new (class { onError() {} })()', '"hooks" must be a plain object of functions'],
      ['hooks: []', '"hooks" must be a plain object of functions'],
      ['onError() {}', '"setup" returned "onError", which belongs into "hooks"'],
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
    const twice = pluginFile('same', '');
    await assert.rejects(
      start([{ source: './a.mjs' }, { source: './b.mjs' }], { 'a.mjs': twice, 'b.mjs': twice }),
      /settings\.plugins\[1\].*"same"/,
    );
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
    const startWith = (where: string) =>
      startTestService(
        {
          settings: { plugins: [{ source: './leak.mjs', config: { dsn: `\${DSN}` } }] },
          apis: apis('http://127.0.0.1:1'),
        },
        { files: { 'leak.mjs': thrower(where) }, env: { DSN: secret } },
      );
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
    const load = (plugin: object) => loadObject({ settings: { plugins: [plugin] }, apis: apis('http://127.0.0.1:1') });
    await assert.rejects(load({ source: 'builtin:cahce' }), /unknown built-in plugin "cahce".*cache/);
    await assert.rejects(load({ source: 'builtin:parameters', enabled: false }), /cannot be left out/);
    await assert.rejects(
      start([{ source: 'builtin:sign-eip191', enabled: false }], {}),
      /^Error: nothing signs answers/,
    );
    await assert.rejects(
      start([{ source: 'builtin:request-body', enabled: false }], {}),
      /no plugin provides "parseBody", without which nothing can be served/,
    );
    await assert.rejects(
      start([{ source: 'builtin:endpoints', enabled: false }], {}),
      /no plugin provides "resolve", without which nothing can be served/,
    );
    await load({ source: 'builtin:cache', enabled: false });
    await assert.rejects(load({ source: './p.mjs', timeout: 0 }), /settings\.plugins\[0\]\.timeout/);
  });
});
