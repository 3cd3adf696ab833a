/** The operator's part of the explorer: on this machine, with the token, and for nobody else. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { testPlugin } from 'signed-data-proxy/plugins-sdk/testing';
import { request } from 'undici';
import { stringify } from 'yaml';
import { errorsOf } from '../support/config.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const TOKEN = 'operator-token-01';
const SECRET = 'upstream-secret-1';
const explorer = { operatorToken: '$' + '{TOKEN}' };
const env = { TOKEN, SECRET };

function configOf(url: string, endpoint: object = {}, settings: object = { explorer }) {
  const eth = { name: 'eth', path: '/p', parameters: [{ name: 'symbol', required: true }], ...endpoint };
  const auth = { type: 'apiKey', keys: ['the-key-of-a-client'] };
  return { settings, apis: [{ name: 'prices', url, headers: { 'X-Key': '$' + '{SECRET}' }, auth, endpoints: [eth] }] };
}

describe('operator mode', async () => {
  const upstream = await upstreamFor(suite);
  const encoding = { type: 'int256', path: '$.price', times: '1e2' };
  const service = await serviceFor(suite, configOf(upstream.url, { encoding }), { env });
  const local = new URL(service.url).host;

  const asked = (id = service.ids['prices/eth']) => ({ endpointId: id, parameters: { symbol: 'ETH' } });
  /** Asks as a program of this machine would; `undefined` leaves a header out. */
  async function tried(headers: Record<string, string | undefined> = {}, body: unknown = asked()) {
    const all = { 'content-type': 'application/json', 'x-operator-token': TOKEN, ...headers };
    const sent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    const response = await request(`${service.url}/explorer/try`, {
      ...{ method: 'POST', headers: sent as Record<string, string>, body: text },
    });
    return [response.statusCode, JSON.parse(await response.body.text())];
  }

  it('asks the upstream once, without a key of a client, and shows what try shows, but no secret', async () => {
    upstream.on('/p', (req, res) => {
      const key = String(req.headers['x-key']);
      res.end(JSON.stringify({ price: 2064.5, echo: `key ${key}`, uses: { [key]: 1 } }));
    });
    const [status, trial] = await tried({ origin: service.url, 'sec-fetch-site': 'same-origin' });
    assert.equal(status, 200);
    assert.deepEqual(trial, {
      data: { echo: 'key ***', price: 2064.5, uses: { '***': 1 } },
      values: [
        { path: '$.echo', value: 'key ***', type: 'string', signs: '"key ***"' },
        { path: '$.price', value: 2064.5, type: 'int256', times: '1e18', signs: '2064500000000000000000' },
        { path: "$.uses['***']", value: 1, type: 'int256', signs: '1' },
      ],
      own: { path: '$.price', value: null, type: 'int256', times: '1e2', signs: '206450' },
    });
    assert.deepEqual(
      upstream.requests.map(({ path, headers }) => [path, headers['x-key']]),
      [['/p?symbol=ETH', SECRET]],
    );
  });

  it('refuses whoever is not its operator on this machine, and asks nothing', async () => {
    upstream.requests.length = 0;
    const remote = [403, { error: 'Operator mode answers on its own machine only, and through no proxy' }];
    const page = [403, { error: 'Operator mode answers its own page only: open it at 127.0.0.1 or localhost' }];
    const media = [415, { error: 'Content-Type must be application/json' }];
    const token = [401, { error: 'Invalid operator token: settings.explorer.operatorToken has the right one' }];
    const port = local.replace(/.*:/, '');
    for (const [headers, expected] of [
      [{ 'x-forwarded-for': '127.0.0.1' }, remote],
      [{ 'x-forwarded-host': local }, remote],
      [{ 'x-forwarded-proto': 'http' }, remote],
      [{ forwarded: 'for=127.0.0.1' }, remote],
      [{ via: '1.1 proxy' }, remote],
      [{ 'x-real-ip': '127.0.0.1' }, remote],
      [{ host: `rebound.example:${port}` }, page],
      [{ host: `localhost.evil.example:${port}` }, page],
      [{ host: `0.0.0.0:${port}` }, page],
      [{ host: `evil@127.0.0.1:${port}` }, page],
      [{ origin: 'null' }, page],
      [{ origin: 'https://evil.example' }, page],
      [{ origin: `http://127.0.0.1:${Number(port) + 1}` }, page],
      [{ origin: `https://${local}` }, page],
      [{ host: `localhost:${port}`, origin: service.url }, page],
      [{ 'sec-fetch-site': 'cross-site' }, page],
      [{ 'sec-fetch-site': 'same-site' }, page],
      [{ 'content-type': 'text/plain' }, media],
      [{ 'content-type': 'application/x-www-form-urlencoded' }, media],
      [{ 'content-type': 'application/jsonp' }, media],
      [{ 'content-type': undefined }, media],
      [{ 'x-operator-token': undefined }, token],
      [{ 'x-operator-token': `${TOKEN}2` }, token],
      [{ 'x-operator-token': 'the-key-of-a-client' }, token],
    ] as const)
      assert.deepEqual(await tried(headers), expected, JSON.stringify(headers));
    assert.deepEqual(upstream.requests, []);
  });

  it('refuses what is no question, in words', async () => {
    const body = [400, { error: 'Request body must be {"endpointId": "0x…", "parameters": {…}}' }];
    const id = service.ids['prices/eth'];
    const deep = `{"endpointId":"${id}","parameters":{"a":${'['.repeat(300)}${']'.repeat(300)}}}`;
    for (const wrong of ['', '[]', 'null', '{', { endpointId: id }, { endpointId: 1, parameters: {} }, deep])
      assert.deepEqual(await tried({}, wrong), body);
    assert.deepEqual(await tried({}, new Uint8Array([0x22, 0xff, 0x22])), body);
    const rounded = `{"endpointId":"${id}","parameters":{"symbol":12345678901234567890123}}`;
    const inexact = 'prices/eth: 400 Invalid parameter: symbol (send this number as a string)';
    assert.deepEqual(await tried({}, rounded), [422, { error: inexact }]);
    assert.deepEqual(await tried({}, asked(`0x${'0'.repeat(64)}`)), [404, { error: 'Endpoint not found' }]);
    assert.deepEqual(await tried({}, 'x'.repeat(65_537)), [413, { error: 'Request body too large' }]);
    const other = await request(`${service.url}/explorer/try`);
    assert.equal(other.statusCode, 405);
    await other.body.dump();
  });

  it('says why there is no answer, and tells no secret', async () => {
    const missing = await tried({}, { ...asked(), parameters: {} });
    assert.deepEqual(missing, [422, { error: 'prices/eth: 400 Missing required parameter(s): symbol' }]);
    upstream.on('/p', faults.serverError());
    const failed = await tried();
    assert.deepEqual(failed, [422, { error: 'prices/eth: 502 API call failed (upstream status 500)' }]);
  });

  it('has one trial at a time', async () => {
    let answer = () => {};
    const begun = new Promise<void>((resolve) => {
      upstream.on('/p', (_req, res) => {
        answer = () => void res.end('1');
        resolve();
      });
    });
    const first = tried();
    await begun;
    assert.deepEqual(await tried(), [503, { error: 'Another trial is under way' }]);
    answer();
    assert.equal((await first)[0], 200);
  });

  it('reads the config file as it is now', async () => {
    upstream.json('/p', { price: 3 });
    const { apis, settings } = configOf(upstream.url, { encoding: { type: 'int256', path: '$.price' } });
    await writeFile(join(service.folder, 'config.yaml'), stringify({ version: '1.0', apis, settings }));
    const [, { own }] = await tried();
    assert.deepEqual(own, { path: '$.price', value: null, type: 'int256', signs: '3' });
    await writeFile(join(service.folder, 'config.yaml'), stringify({ version: '1.0', apis: [] }));
    assert.equal((await tried())[0], 422);
  });

  it('tells no secret where a plugin cannot be started', async () => {
    const { apis, settings } = configOf(upstream.url, {}, { explorer, plugins: [{ source: './away.mjs' }] });
    await writeFile(
      join(service.folder, 'away.mjs'),
      `export default { name: 'away', setup: ({ config }) => ({
        start: () => { throw new Error('refused: ' + config.apis[0].headers['X-Key']); },
      }) };`,
    );
    await writeFile(join(service.folder, 'config.yaml'), stringify({ version: '1.0', apis, settings }));
    assert.deepEqual(await tried(), [422, { error: 'plugin "away" cannot start: refused: ***' }]);
  });

  it('is offered by the page on this machine alone', async () => {
    const shown = async (headers: Record<string, string>) =>
      (await (await request(service.url, { headers })).body.text()).includes('"isOperated":true');
    assert.equal(await shown({}), true);
    assert.equal(await shown({ host: 'prices.example' }), false);
    assert.equal(await shown({ 'x-forwarded-for': '192.0.2.1' }), false);
  });

  it('answers nobody on another machine, whatever the headers say', async (t) => {
    const harness = await testPlugin({ name: 'p', hooks: {} });
    const other = await harness.serve(configOf(upstream.url), { env });
    t.after(() => other.stop());
    const headers = { Host: '127.0.0.1', 'Content-Type': 'application/json', 'X-Operator-Token': TOKEN };
    const body = JSON.stringify(asked());
    for (const ip of ['192.0.2.1', '10.0.0.1', '::ffff:192.0.2.1', ''])
      assert.equal((await other.request({ method: 'POST', path: '/explorer/try', headers, body, ip })).status, 403);
  });

  it('is off without a token, which must be hard to guess', async (t) => {
    const off = await serviceFor(t, configOf(upstream.url, {}, { explorer: true }), { env });
    const response = await request(`${off.url}/explorer/try`, { method: 'POST', headers: { 'x-operator-token': '' } });
    assert.equal(response.statusCode, 404);
    await response.body.dump();
    const errors = await errorsOf(configOf(upstream.url, {}, { explorer: { operatorToken: 'short' } }));
    assert.ok(
      errors.some((error) => error.startsWith('settings.explorer')),
      errors.join('\n'),
    );
  });
});
