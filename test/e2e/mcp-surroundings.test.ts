/** Who may reach the tools, which there are, what they count as, and what a stop, a reload and replicas do. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { request } from 'undici';
import { verifyResponse } from '../../verify/index.ts';
import { suite } from '../support/lifetime.ts';
import { callOf, mcpClient, postMcp, textIn } from '../support/mcp.ts';
import { scrapeAfter } from '../support/metrics.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { oneApi, serviceFor, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const ENDPOINTS = { a: {}, b: { mode: 'async' }, 'c d': { path: '/c' } };
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
const NO_HOST = { error: 'Host or Origin not allowed: the operator can add it to settings.mcp.hosts' };
const BUSY = { error: 'Too Many Requests' };

describe('MCP and its surroundings', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 7 }) });

  const configOf = (mcp: unknown, more: object = {}, settings: object = {}) =>
    oneApi(upstream.url, ENDPOINTS, { ...more, settings: { mcp, ...settings } });
  const toolsIn = async (service: { readonly url: string }, path = '') => {
    const { said } = await postMcp({ url: `${service.url}${path}` }, { ...PING, method: 'tools/list' });
    return said.result.tools.map(({ name }: { name: string }) => name);
  };

  const service = await serviceFor(suite, configOf(true));

  beforeEach(() => {
    for (const path of ['/a', '/b']) upstream.json(path, { price: 7 });
  });

  it('is off unless the config has it', async (t) => {
    const service = await serviceFor(t, configOf(undefined));
    const { status, said } = await postMcp(service, PING);
    assert.deepEqual([status, said], [404, { error: 'Not Found' }]);
  });

  it('has the tools that the config chooses, at its path', async (t) => {
    const service = await serviceFor(t, configOf({ path: '/for/agents/mcp', include: ['api/a', 'api/c d'] }));
    assert.deepEqual(await toolsIn(service, '/for/agents'), ['api_a', 'api_c_d', 'verify_answer']);
    assert.equal((await reload(service, configOf({ exclude: ['api/a'] }))).done, true);
    assert.deepEqual(await toolsIn(service), ['api_b', 'api_c_d', 'verify_answer']);
    const { said } = await postMcp(service, callOf('api_a'));
    assert.deepEqual(said.error, { code: -32602, message: 'Unknown tool: api_a' });
  });

  it('a page of another site cannot have its browser ask, whatever its name leads to', async (t) => {
    const openapi = { servers: ['https://api.example.com/prices'] };
    const service = await serviceFor(t, configOf({ hosts: ['Agents.example', '[fd00::1]'] }, {}, { openapi }));
    const port = new URL(service.url).port;
    for (const headers of [
      { Host: `localhost:${port}` },
      { Host: `[::1]:${port}`, Origin: `http://127.0.0.1:${port}` },
      { Host: 'agents.EXAMPLE' },
      { Host: '[fd00::1]:8080' },
      { Host: 'api.example.com', Origin: 'https://api.example.com' },
    ])
      assert.equal((await postMcp(service, PING, headers)).status, 200, JSON.stringify(headers));
    const pages = ['https://evil.example', 'null', 'https://api.example.com.evil.example'];
    for (const headers of [
      ...[`evil.example:${port}`, 'localhost.evil.example', '0.0.0.0'].map((Host) => ({ Host })),
      ...pages.map((Origin) => ({ Host: 'localhost', Origin })),
    ]) {
      const { status, said } = await postMcp(service, PING, headers);
      assert.deepEqual([status, said], [403, NO_HOST], JSON.stringify(headers));
    }
  });

  it('a message to another host counts like any other, for the limit and in the metrics', async (t) => {
    const more = { server: { rateLimit: { max: 2, window: 600_000 } } };
    const service = await serviceFor(t, configOf(true, more, { metrics: { port: 0 } }));
    const statuses: number[] = [];
    for (const Host of ['evil.example', 'evil.example', 'evil.example', 'localhost'])
      statuses.push((await postMcp(service, PING, { Host })).status);
    assert.deepEqual(statuses, [403, 403, 429, 429]);
    const counted = Object.entries((await scrapeAfter(service, 4)).table('requests_total'));
    const ofTools = counted.flatMap(([labels, value]) => (labels.includes('/mcp') ? [value] : []));
    assert.deepEqual(ofTools, [2, 2]);
  });

  it('a message counts as one request, and a call that is refused for it is an error of the tool', async (t) => {
    const service = await serviceFor(t, configOf(true, { server: { rateLimit: { max: 3, window: 600_000 } } }));
    for (const message of [callOf('api_a'), { ...PING, method: 'tools/list' }, callOf('verify_answer')])
      assert.equal((await postMcp(service, message)).status, 200);
    for (const given of [{}, { n: 'NUMBER' }, { n: 'DEEP' }, { n: 1, _meta: 'PAYMENT' }]) {
      const call = JSON.stringify(callOf('api_a', given)).replace('"NUMBER"', '12345678901234567890');
      const paying = call.replace(',"_meta":"PAYMENT"}', '},"_meta":{"x402/payment":"DEEP"}');
      const refused = await postMcp(service, paying.replace('"DEEP"', `${'['.repeat(30_000)}${']'.repeat(30_000)}`));
      assert.equal(textIn(refused.said.result), 'Too Many Requests');
    }
    const { said, status } = await postMcp(service, callOf('api_a'));
    assert.deepEqual([status, textIn(said.result), said.result.isError], [200, 'Too Many Requests', true]);
    const refusal = said.result._meta['signed-data-proxy/refusal'];
    assert.deepEqual([refusal.status, refusal.retryAfter > 0], [429, true]);
    const calls = [callOf('verify_answer'), callOf('no_tool'), callOf('api_a', [])];
    const unnamed = { ...callOf(''), params: { name: { toString: 1 } } };
    for (const message of [PING, ...calls, unnamed, [callOf('api_a')], '{']) {
      const refused = await postMcp(service, message);
      assert.deepEqual([refused.status, refused.said], [429, BUSY]);
    }
    assert.equal(upstream.requests.filter(({ path }) => path === '/a').length, 1);
  });

  it('a bearer token goes to nobody who does not look for it', async (t) => {
    const seen = `const seen = [];
export default { name: 'seen', setup: () => ({
  hooks: { onHttpRequest: ({ headers }) => void seen.push(headers.authorization ?? 'none') },
  routes: [{ method: 'GET', path: '/seen', admit: false, handle: () => ({ status: 200, body: JSON.stringify(seen) }) }],
}) };`;
    const { files, plugins } = pluginFiles({ seen });
    const service = await serviceFor(t, configOf(true, {}, { plugins }), { files });
    await postMcp(service, callOf('api_a'), { Authorization: 'Bearer secret' });
    assert.deepEqual(await (await fetch(`${service.url}/seen`)).json(), ['none']);
  });

  it('what upstreams and clients write cannot break out of the answer', async (t) => {
    const said = { 'a\r\nb': '\u2028\u0000"]}\n\ndata: {"x":1}\r\n', __proto__: 1, constructor: { prototype: 2 } };
    const text = JSON.stringify(said).replace('"constructor"', '"__proto__":{"polluted":true},"constructor"');
    upstream.text('/a', text);
    for (const mode of ['auto', 'legacy']) {
      const client = await mcpClient(t, service, {}, mode);
      const { structuredContent } = await client.callTool({ name: 'api_a', arguments: {} });
      assert.equal(verifyResponse(structuredContent, { node: TEST_ADDRESS }).ok, true);
      assert.deepEqual((structuredContent as { rawData: unknown }).rawData, JSON.parse(text));
    }
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });

  it('the text of the answer is there letter by letter, whatever its keys', async () => {
    upstream.text('/a', '{"9":"nine","10":"ten","price":1e21}');
    const { body } = await request(`${service.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(callOf('api_a')),
    });
    const message = await body.text();
    const { result } = JSON.parse(message.replace(/^event: message\ndata: /, ''));
    assert.match(textIn(result), /"rawData":\{"10":"ten","9":"nine","price":1e\+21\}/);
    assert.deepEqual(result.structuredContent, JSON.parse(textIn(result)));
    assert.equal(verifyResponse(result.structuredContent, { node: TEST_ADDRESS }).ok, true);
  });

  it('one client goes from replica to replica, and a stop waits for the call that is under way', async (t) => {
    const held: (() => void)[] = [];
    upstream.on('/b', (_req, res) => {
      held.push(() => res.setHeader('Content-Type', 'application/json').end('{"price":7}'));
    });
    const replicas = [await startTestService(configOf(true)), await startTestService(configOf(true))];
    const [first, second] = replicas as [(typeof replicas)[0], (typeof replicas)[0]];
    t.after(() => second.stop());
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const begun = await postMcp(first, { ...PING, method: 'initialize', params: initialize });
    assert.deepEqual([begun.said.result.protocolVersion, begun.headers['mcp-session-id']], ['2025-11-25', undefined]);
    const version = { 'MCP-Protocol-Version': '2025-11-25' };
    assert.equal((await postMcp(second, callOf('api_a'), version)).said.result.isError, undefined);
    const calling = postMcp(first, callOf('api_b'), version);
    await upstream.untilRequested('/b');
    const stopped = first.stop();
    for (const answer of held) answer();
    assert.equal((await calling).said.result.structuredContent.rawData.price, 7);
    await stopped;
  });

  it('a client that leaves ends its call', async (t) => {
    upstream.on('/b', faults.hang());
    const client = await mcpClient(t, service);
    const leaving = new AbortController();
    const calling = client.callTool({ name: 'api_b', arguments: {} }, { signal: leaving.signal });
    await upstream.until(() => upstream.requests.filter(({ path }) => path === '/b').length > 1);
    leaving.abort();
    await assert.rejects(calling);
    await upstream.untilAborted('/b');
  });
});
