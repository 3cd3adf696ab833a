/** A parameter's map: clients give one text, the upstream gets another. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { askableService } from '../support/askable.ts';
import { assertRefused } from '../support/http.ts';
import { mcpClient } from '../support/mcp.ts';
import { reload } from '../support/reload.ts';

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

const changing = `export default { name: 'changing', hooks: { onBeforeApiCall({ parameters }) {
  globalThis.testSeen = parameters;
  return globalThis.testBefore?.(parameters);
} } };`;

describe('maps of parameters', async () => {
  const {
    service,
    ask: sent,
    refuse: refused,
  } = await askableService(endpoints, {
    settings: { openapi: true, mcp: true, explorer: true },
    sources: { changing },
    files: {
      'symbols.yaml': 'AAVE/USD: aave # first\n"${HOME}": "${HOME}"\nfile: kept\n',
      'deep/symbols.json': '{\n\t"AAVE/USD": "aave",\n\t"0x1": "\\u00fc"\n}\n',
    },
  });

  beforeEach(() => {
    for (const name of ['testSeen', 'testBefore']) Reflect.deleteProperty(globalThis, name);
  });

  const refuse = async (endpoint: string, name: string, ...values: unknown[]) => {
    for (const value of values) await refused(endpoint, { [name]: value }, `Invalid parameter: ${name}`);
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
    await refused('some', { q: 'A B' }, 'Invalid parameter: q (must match the pattern /USD$)');
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
    const at = `apis[0].endpoints[10].parameters[0].map.file: ${service.folder}/symbols.yaml`;
    const { lines } = await reload(service);
    const error = `error ${at}: ["ETH/USD"]: expected a string, found a number, write it in quotes (api/file, line 96)`;
    assert.ok(lines.includes(error), lines.join('\n'));
    assert.equal((await sent('file', { q: 'AAVE/USD' })).path, '/file?q=aave');
    await writeFile(join(service.folder, 'symbols.yaml'), 'ETH/USD: ethereum\n');
    assert.deepEqual((await reload(service)).done, true);
    await assertRefused(await service.post('api/file', { q: 'AAVE/USD' }), 404, 'Endpoint not found');
    assert.notEqual(before, undefined);
  });
});
