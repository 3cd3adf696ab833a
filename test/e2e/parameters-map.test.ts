/** A parameter's map: clients give one text, the upstream gets another. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import canonicalize from 'canonicalize';
import { stringify } from 'yaml';
import { ConfigErrors, loadConfig } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';
import { oneApi } from '../support/answers.ts';
import { errorsOf, loadObject, warningsOf } from '../support/config.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { mcpClient } from '../support/mcp.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const map = { 'AAVE/USD': 'aave', 'BTC/USD': 'bitcoin', 'A B': 'a&b=ü', '1': 'one', constructor: 'made' };
const q = (more: object = {}) => ({ parameters: [{ name: 'q', map, ...more }] });

const endpoints = {
  query: q(),
  path: { path: '/coins/{q}', parameters: [{ name: 'q', in: 'path', map, required: true }] },
  header: { parameters: [{ name: 'X-Coin', in: 'header', map: { eth: 'ethereum' } }] },
  cookie: { parameters: [{ name: 'coin', in: 'cookie', map: { eth: 'ethereum' } }] },
  body: { method: 'POST', parameters: [{ name: 'q', in: 'body', map }] },
  twice: {
    parameters: [
      { name: 'q', map: { a: 'x', b: 'y' } },
      { name: 'q', in: 'header', map: { b: 'z', c: 'z' } },
    ],
  },
  fixed: q({ fixed: 'AAVE/USD' }),
  fallback: q({ default: 'BTC/USD' }),
  hidden: q({ secret: true }),
  some: q({ schema: { pattern: '/USD$', title: 'Pair' }, description: 'Of what' }),
  file: q({ map: { file: 'symbols.yaml' } }),
  json: q({ map: { file: 'deep/symbols.json' } }),
  chosen: { ...q(), encoding: { type: '*', path: '$.value' } },
};

const changing = `
export default {
  name: 'changing',
  setup: () => ({
    hooks: {
      onBeforeApiCall: ({ parameters }) => {
        globalThis.testSeen = parameters;
        return globalThis.testBefore?.(parameters);
      },
    },
  }),
};`;

describe('maps of parameters', async () => {
  const upstream = await upstreamFor(suite);
  upstream.on('*', faults.json({ value: 7 }));
  const { files, plugins } = pluginFiles({ changing });
  const config = oneApi(upstream.url, endpoints, { settings: { plugins, openapi: true, mcp: true, explorer: true } });
  const service = await serviceFor(suite, config, {
    files: {
      ...files,
      'symbols.yaml': 'AAVE/USD: aave # first\n"${HOME}": "${HOME}"\nfile: kept\n',
      'deep/symbols.json': '{\n\t"AAVE/USD": "aave",\n\t"0x1": "\\u00fc"\n}\n',
    },
  });

  beforeEach(() => {
    upstream.requests.length = 0;
    for (const name of ['testSeen', 'testBefore']) Reflect.deleteProperty(globalThis, name);
  });

  const sent = async (endpoint: string, parameters: object = {}) => {
    const response = await service.post(`api/${endpoint}`, parameters);
    assert.equal(response.status, 200, await response.text());
    const [request, ...others] = upstream.requests.splice(0);
    assert.equal(others.length, 0);
    assert.ok(request);
    return request;
  };
  const refuse = async (endpoint: string, name: string, ...values: unknown[]) => {
    for (const value of values)
      await assertRefused(await service.post(`api/${endpoint}`, { [name]: value }), 400, `Invalid parameter: ${name}`);
    assert.equal(upstream.requests.length, 0, 'before any call');
  };

  it('sends what the map has for a text, wherever it goes', async () => {
    assert.equal((await sent('query', { q: 'AAVE/USD' })).path, '/query?q=aave');
    assert.equal((await sent('query', { q: 'A B' })).path, '/query?q=a%26b%3D%C3%BC');
    assert.equal((await sent('query', { q: '1' })).path, '/query?q=one');
    assert.equal((await sent('query', { q: 'constructor' })).path, '/query?q=made');
    assert.equal((await sent('path', { q: 'BTC/USD' })).path, '/coins/bitcoin');
    assert.equal((await sent('header', { 'X-Coin': 'eth' })).headers['x-coin'], 'ethereum');
    assert.equal((await sent('cookie', { coin: 'eth' })).headers.cookie, 'coin=ethereum');
    assert.equal((await sent('body', { q: 'AAVE/USD' })).body, '{"q":"aave"}');
  });

  it('refuses what is not in it, before any call', async () => {
    await refuse('query', 'q', 'aave', 'aave/usd', 'AAVE/USD ', '', 'toString', '__proto__', 1, true, {}, ['AAVE/USD']);
    await refuse('path', 'q', 'ETH/USD', '..', 1);
    await refuse('header', 'X-Coin', 'ethereum', 'eth\n');
    await refuse('body', 'q', null, 'aave', ['AAVE/USD']);
    await refuse('chosen', 'q', 'aave');
    await refuse('hidden', 'q', 'aave');
  });

  it('has nothing to say where nothing is given', async () => {
    assert.equal((await sent('query')).path, '/query');
    assert.equal((await sent('query', { q: null })).path, '/query');
    await assertRefused(await service.post('api/path', {}), 400, 'Missing required parameter(s): q');
  });

  it('stands for fixed values and defaults, too', async () => {
    assert.equal((await sent('fixed', { q: 'BTC/USD' })).path, '/fixed?q=aave');
    assert.equal((await sent('fallback')).path, '/fallback?q=bitcoin');
    assert.equal((await sent('fallback', { q: 'AAVE/USD' })).path, '/fallback?q=aave');
  });

  it('is that of each parameter where two have one name', async () => {
    const { path, headers } = await sent('twice', { q: 'b' });
    assert.deepEqual([path, headers.q], ['/twice?q=y', 'z']);
    await refuse('twice', 'q', 'a', 'c');
  });

  it('leaves the check to a schema, which sees what the client gave', async () => {
    assert.equal((await sent('some', { q: 'AAVE/USD' })).path, '/some?q=aave');
    await assertRefused(
      await service.post('api/some', { q: 'A B' }),
      400,
      'Invalid parameter: q (must match the pattern /USD$)',
    );
    await refuse('some', 'q', 'ETH/USD');
  });

  it('is applied to what a hook makes of the parameters, which sees what the client gave', async () => {
    await sent('query', { q: 'AAVE/USD' });
    assert.deepEqual(Reflect.get(globalThis, 'testSeen'), { q: 'AAVE/USD' });
    Reflect.set(globalThis, 'testBefore', () => ({ parameters: { q: 'BTC/USD' } }));
    assert.equal((await sent('query', { q: 'AAVE/USD' })).path, '/query?q=bitcoin');
    Reflect.set(globalThis, 'testBefore', () => ({ parameters: { q: 'bitcoin' } }));
    await refuse('query', 'q', 'AAVE/USD');
  });

  it('comes from a file of YAML or JSON, whose content is taken as it is', async () => {
    assert.equal((await sent('file', { q: 'AAVE/USD' })).path, '/file?q=aave');
    assert.equal((await sent('file', { q: '${HOME}' })).path, '/file?q=%24%7BHOME%7D');
    assert.equal((await sent('file', { q: 'file' })).path, '/file?q=kept');
    assert.equal((await sent('json', { q: '0x1' })).path, '/json?q=%C3%BC');
    await refuse('file', 'q', 'BTC/USD');
  });

  it('is an enum in the OpenAPI document, and of the tools of agents', async (t) => {
    const document = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const client = await mcpClient(t, service);
    const { tools } = await client.listTools();
    const of = (name: string) => {
      const { requestBody } = document.paths[`/endpoints/${service.ids[`api/${name}`]}`].post;
      const { q } = requestBody.content['application/json'].schema.properties.parameters.properties;
      assert.deepEqual(tools.find((tool) => tool.name === `api_${name}`)?.inputSchema.properties?.q, q);
      return q;
    };
    const names = Object.keys(map);
    assert.deepEqual(of('query'), { type: 'string', enum: names });
    assert.deepEqual(of('body'), { type: 'string', enum: names });
    assert.deepEqual(of('fallback'), { type: 'string', enum: names, default: 'BTC/USD' });
    const some = { type: 'string', pattern: '/USD$', title: 'Pair', enum: ['AAVE/USD', 'BTC/USD'] };
    assert.deepEqual(of('some'), { ...some, description: 'Of what' });
    assert.deepEqual(of('file'), { type: 'string', enum: ['AAVE/USD', '${HOME}', 'file'] });
    assert.deepEqual(of('hidden'), { type: ['string', 'number', 'boolean'] });
    assert.ok(!JSON.stringify(document).includes('bitcoin'), 'what is sent upstream is no matter of clients');
  });

  it('is a choice in the explorer', async () => {
    const page = await (await fetch(`${service.url}/`)).text();
    assert.ok(page.includes('"schema":{"type":"string","enum":["1","AAVE/USD","BTC/USD","A B","constructor"]}'));
    assert.ok(!page.includes('bitcoin'));
  });

  it('is read anew at a reload', async () => {
    const before = service.ids['api/file'];
    await writeFile(join(service.folder, 'symbols.yaml'), 'ETH/USD: 5\n');
    const at = 'apis[0].endpoints[10].parameters[0].map';
    const { lines } = await reload(service);
    assert.ok(
      lines.includes(
        `error ${at}.file: ${service.folder}/symbols.yaml: ["ETH/USD"]: expected a string, found a number, write it in quotes (api/file, line 96)`,
      ),
      lines.join('\n'),
    );
    assert.equal((await sent('file', { q: 'AAVE/USD' })).path, '/file?q=aave');
    await writeFile(join(service.folder, 'symbols.yaml'), 'ETH/USD: ethereum\n');
    assert.deepEqual((await reload(service)).done, true);
    const response = await service.post('api/file', { q: 'AAVE/USD' });
    await assertRefused(response, 404, 'Endpoint not found');
    assert.notEqual(before, undefined);
  });
});

describe('a map in the config', () => {
  const AT = 'apis[0].endpoints[0].parameters[0]';
  const of = (parameter: object, more: object = {}) =>
    oneApi('https://a.example', { e: { path: '/', parameters: [{ name: 'q', ...parameter }], ...more } });
  const errors = (parameter: object, more: object = {}) => errorsOf(of(parameter, more));

  it('has texts, and at least one', async () => {
    assert.deepEqual(await errors({ map: {} }), [`${AT}.map: must not be empty`]);
    assert.deepEqual(await errors({ map: [] }), [`${AT}.map: expected a mapping, found a list`]);
    assert.deepEqual(await errors({ map: 'symbols.yaml' }), [
      `${AT}.map: expected a mapping, found a string: write {file: …} for what a file holds`,
    ]);
    assert.deepEqual(await errors({ map: { a: 5 } }), [
      `${AT}.map.a: expected a string, found a number, write it in quotes`,
    ]);
    assert.deepEqual(await errors({ map: { a: { b: 'c' } } }), [`${AT}.map.a: expected a string, found a mapping`]);
    assert.deepEqual(await errors({ map: { a: null } }), [`${AT}.map.a: expected a string, found nothing`]);
    assert.deepEqual(await errors({ map: { file: 5 } }), [
      `${AT}.map.file: expected a string, found a number, write it in quotes`,
    ]);
  });

  it('holds what the operator sends', async () => {
    for (const key of ['fixed', 'default'])
      for (const value of ['c', 'b', 1, true, 'toString'])
        assert.deepEqual(await errors({ map: { a: 'b', '1': 'x' }, [key]: value }), [
          `${AT}.${key}: is not in the map`,
        ]);
    assert.deepEqual(await errors({ map: { a: 'b' }, default: 'a' }), []);
    // Only a map of this one key names a file.
    assert.deepEqual(await errors({ map: { file: 'symbols.yaml', a: 'b' }, default: 'file' }), []);
  });

  it('that cannot be read is all that is said to be wrong', async () => {
    const own = { fixed: 'BTC/USD', in: 'path' };
    const path = { path: '/{q}' };
    assert.deepEqual(await errors({ ...own, map: 'symbols.yaml' }, path), [
      `${AT}.map: expected a mapping, found a string: write {file: …} for what a file holds`,
    ]);
    const missing = await errors({ default: 'BTC/USD', map: { file: '/nowhere/symbols.yaml' } });
    assert.deepEqual(missing, [`${AT}.map.file: /nowhere/symbols.yaml: file not found`]);
  });

  it('has values that can be sent', async () => {
    const path = { path: '/{q}' };
    assert.deepEqual(await errors({ in: 'path', map: { ok: 'x', 'a/b': '..', c: '' } }, path), [
      `${AT}.map["a/b"]: cannot be sent as path`,
      `${AT}.map.c: cannot be sent as path`,
    ]);
    assert.deepEqual(await errors({ in: 'header', map: { a: 'x\ny' } }), [`${AT}.map.a: cannot be sent as header`]);
    assert.deepEqual(await errors({ in: 'cookie', map: { a: 'x;y' } }), [`${AT}.map.a: cannot be sent as cookie`]);
  });

  it('may hold variables, of which a warning says where they go', async () => {
    const map = { a: '${MINE}', 'b/c': '${MINE}' };
    const message = 'contains a variable: its value enters the endpoint ID, and --explain shows it';
    assert.deepEqual(await warningsOf(of({ map }), { MINE: 'hunter2' }), [
      `${AT}.map.a: ${message}`,
      `${AT}.map["b/c"]: ${message}`,
    ]);
    assert.deepEqual(await warningsOf(of({ map, secret: true }), { MINE: 'hunter2' }), []);
  });

  it('is part of the endpoint ID, as far as there is one', async () => {
    const textOf = async (parameter: object) => (await loadObject(of(parameter))).explained[0]?.text;
    const plain = { name: 'q', in: 'query', required: false, secret: false };
    const text = (parameter: object) =>
      canonicalize({
        ...{ url: 'https://a.example', path: '/', method: 'GET' },
        ...{ parameters: [parameter], encoding: null, encrypt: null },
      });
    assert.equal(await textOf({}), text(plain));
    assert.equal(await textOf({ map: { b: 'x', a: 'y' } }), text({ ...plain, map: { a: 'y', b: 'x' } }));
    assert.equal(await textOf({ map: { a: 'y' }, secret: true }), text({ ...plain, secret: true }));
  });
});

describe('the file of a map', () => {
  async function load(t: TestContext, content: string | undefined, file = 'symbols.yaml') {
    const folder = await mkdtemp(join(tmpdir(), 'sdp-map-'));
    t.after(() => rm(folder, { recursive: true }));
    const parameters = [{ name: 'q', map: { file } }];
    const config = { version: '1.0', ...oneApi('https://a.example', { e: { parameters } }) };
    await writeFile(join(folder, 'config.yaml'), stringify(config));
    if (content !== undefined) await writeFile(join(folder, 'symbols.yaml'), content);
    const options = { file: join(folder, 'config.yaml'), env: { DIR: folder }, builtins: definitions() };
    const loading = loadConfig(options).catch((error: unknown) => {
      assert.ok(error instanceof ConfigErrors);
      return error.message.replaceAll(folder, '<folder>');
    });
    return { loading, options };
  }
  const AT = 'apis[0].endpoints[0].parameters[0].map';

  it('is one whose faults are told with their place', async (t) => {
    const cases: [string | undefined, string][] = [
      [undefined, `${AT}.file: <folder>/symbols.yaml: file not found`],
      ['', `${AT}.file: <folder>/symbols.yaml: is empty`],
      ['- a\n', `${AT}.file: <folder>/symbols.yaml: expected a mapping (key: value) at the top level`],
      ['a: x\na: y\n', `${AT}.file: <folder>/symbols.yaml:2:1: duplicate key "a"`],
      ['{}', `${AT}.file: <folder>/symbols.yaml: must not be empty`],
      ['a: 1.5', `${AT}.file: <folder>/symbols.yaml: a: expected a string, found a number, write it in quotes`],
      ['a: {b: c}', `${AT}.file: <folder>/symbols.yaml: a: expected a string, found a mapping`],
    ];
    for (const [content, message] of cases) {
      const { loading } = await load(t, content);
      assert.equal(await loading, message);
    }
    const { loading } = await load(t, 'a: b', '.');
    assert.equal(await loading, `${AT}.file: <folder>: is a directory, expected a file`);
  });

  it('may be named by a variable, without which the endpoint has no ID', async (t) => {
    const { loading } = await load(t, 'a: b', '${DIR}/symbols.yaml');
    const found = await loading;
    assert.ok(typeof found !== 'string');
    assert.match(found.explained[0]?.text ?? '', /"map":\{"a":"b"\}/);
    const { options } = await load(t, 'a: b', '${NONE}/symbols.yaml');
    const { endpoints, warnings } = await loadConfig({ ...options, allowUnset: true });
    assert.deepEqual(endpoints, []);
    assert.ok(warnings.some(({ message }) => message === 'no endpoint ID: it depends on the variable NONE'));
  });
});
