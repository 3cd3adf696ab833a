/** A simple plugin has config keys of its own, which are checked. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type SimplePlugin, Type } from '../../plugins-sdk/index.ts';
import { testEndpoint, testPlugin } from '../../service/testing.ts';
import { assertRefused } from '../support/http.ts';
import { notes, pluginFiles, pluginTools } from '../support/plugin-files.ts';
import { oneApi, serviceFor, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const NOWHERE = 'http://127.0.0.1:9';
type Endpoints = Parameters<typeof oneApi>[1];

/** A config with plugins of these sources, and its files. */
function withPlugins(sources: Readonly<Record<string, string>>, url: string, endpoints: Endpoints, api = {}) {
  const { files, plugins } = pluginFiles(sources);
  return [oneApi(url, endpoints, { api, settings: { plugins } }), { files }] as const;
}
const keysOf = (members: string) =>
  `import { Type } from 'signed-data-proxy/plugins-sdk';\nexport const keys = { ${members} };`;

/** Writes down what its hooks are told, and lets nothing pass that is more than `ceiling`. */
const ceiling = `${keysOf('ceiling: Type.Number({ minimum: 0 }), note: Type.Object({ to: Type.String() })')}
${pluginTools}
const told = ({ endpoint, keys, signal }) => note(endpoint ?? 'nowhere', [keys, Object.isFrozen(keys), !signal.aborted]);
export default () => ({
  name: 'ceiling',
  hooks: {
    onHttpRequest: told,
    onAfterApiCall({ keys: { ceiling = Infinity }, response: { data } }) {
      return data > ceiling ? { data, status: 500 } : undefined;
    },
    onBeforeSign: told,
    onResponseSent: told,
    onError: told,
  },
});`;

describe('keys of a simple plugin (`export const keys`)', () => {
  it('are in the contexts of all hooks: the endpoint’s values, or else those of its API', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json(100) });
    const encoding = { type: 'uint256', path: '$' };
    const endpoints = { low: { ceiling: 99 }, high: { encoding, note: { to: 'us' } } };
    const service = await serviceFor(t, ...withPlugins({ ceiling }, upstream.url, endpoints, { ceiling: 1000 }));
    await assertRefused(await service.post('api/low'), 502, 'API call failed');
    assert.equal((await service.post('api/high')).status, 200);
    await fetch(`${service.url}/endpoints/0x00`, { method: 'POST' });
    await notes.until('nowhere');
    const low = { ceiling: 99, note: undefined };
    const high = { ceiling: 1000, note: { to: 'us' } };
    assert.deepEqual(notes.of('low'), Array(2).fill([low, true, true]));
    assert.deepEqual(notes.of('high'), Array(3).fill([high, true, true]));
    assert.deepEqual(notes.of('nowhere'), [[{}, true, true]]);
  });

  it('belong to the plugin: others are unknown, wrong values and second owners are errors', async () => {
    const errors = async (endpoint: object, sources: Record<string, string>) => {
      const starting = startTestService(...withPlugins(sources, NOWHERE, { e: { ...endpoint } }));
      const lines = await starting.then(
        (service) => service.stop().then(() => ''),
        ({ message }: Error) => message,
      );
      return lines.split('\n').map((line) => line.replace(/(?<=unknown key), .*/, ''));
    };
    const at = 'apis[0].endpoints[0]';
    assert.deepEqual(await errors({ ceiling: 1 }, { ceiling }), ['']);
    assert.deepEqual(await errors({ ceiling: 1 }, {}), [`${at}.ceiling: unknown key`]);
    const two = [`${at}.floor: unknown key`, `${at}.ceiling: must be at least 0`];
    assert.deepEqual(await errors({ floor: 1, ceiling: -1 }, { ceiling }), two);
    const owned = (by: string, key: string, owner: string) =>
      `settings.plugins: plugin "${by}" cannot own the config key ${key}: it belongs to plugin "${owner}"`;
    const other = `${keysOf('ceiling: Type.Number()')} export default { name: 'other', hooks: {} };`;
    const both = ['api.ceiling', 'endpoint.ceiling'].map((key) => owned('other', key, './ceiling.mjs'));
    assert.deepEqual(await errors({}, { ceiling, other }), both);
    const taken = `${keysOf('path: Type.String()')} export default { name: 'taken', hooks: {} };`;
    assert.deepEqual(await errors({}, { taken }), [owned('taken', 'endpoint.path', 'call-api')]);
  });

  for (const [what, keys] of Object.entries({
    list: '[]',
    text: "'a'",
    'a list of names': "['a']",
    'no schema': '{ a: 1 }',
    'a dotted name': "{ 'a.b': {} }",
  })) {
    it(`are schemas by name, or the plugin is not loaded: ${what}`, async () => {
      const odd = `export const keys = ${keys};\nexport default { name: 'odd', hooks: {} };`;
      const message = 'settings.plugins[0].source: plugin "./odd.mjs": its "keys" must be an object of schemas by name';
      await assert.rejects(startTestService(...withPlugins({ odd }, NOWHERE, { e: {} })), { message });
    });
  }

  it('are known where the plugin itself cannot be made', async () => {
    const source = `${keysOf('ceiling: Type.Number()')} export default () => { throw new Error('boom'); };`;
    const message = 'settings.plugins[0].source: plugin "./failing.mjs": cannot be loaded: boom';
    const starting = startTestService(...withPlugins({ failing: source }, NOWHERE, { e: { ceiling: 1 } }));
    await assert.rejects(starting, { message });
  });

  it('are typed, and in the harness', async () => {
    const keys = { ceiling: Type.Number(), note: Type.Object({ to: Type.String() }) };
    const plugin = {
      name: 'p',
      hooks: {
        onBeforeApiCall: ({ keys: { ceiling, note }, parameters, requestId }) => {
          const limit: number | undefined = ceiling;
          return { parameters: { ...parameters, limit: limit ?? null, to: note?.to ?? null, id: requestId.length } };
        },
      },
    } satisfies SimplePlugin<typeof keys>;
    const endpoints = [testEndpoint({ block: { ceiling: 5 }, apiBlock: { note: { to: 'us' } } })];
    const harness = await testPlugin(plugin, { keys, services: { endpoints } });
    const value = { a: 1, limit: 5, to: 'us', id: 66 };
    assert.deepEqual(await harness.run('onBeforeApiCall', { parameters: { a: 1 } }), { value });
    const other = await harness.run('onBeforeApiCall', { endpoint: testEndpoint({ block: { ceiling: 7 } }) });
    assert.deepEqual(other, { value: { limit: 7, to: null, id: 66 } });
    assert.deepEqual(harness.complaints, []);
  });

  it('have the defaults of their schemas, at any depth', async (t) => {
    const members =
      'ceiling: Type.Number({ default: 9 }), note: Type.Object({ to: Type.Optional(Type.String({ default: "us" })) })';
    const source = `${keysOf(members)} ${pluginTools}
      export default { name: 'defaults', hooks: { onHttpRequest: ({ endpoint, keys }) => note('default ' + endpoint, keys) } };`;
    const endpoints = { none: {}, some: { ceiling: 1, note: {} } };
    const service = await serviceFor(t, ...withPlugins({ defaults: source }, NOWHERE, endpoints));
    await service.post('api/none');
    await service.post('api/some');
    assert.deepEqual(notes.of('default none'), [{ ceiling: 9, note: undefined }]);
    assert.deepEqual(notes.of('default some'), [{ ceiling: 1, note: { to: 'us' } }]);
  });
});
