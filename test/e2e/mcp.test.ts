/** Agents list and call endpoints as tools, by the official clients; what they get is the signed answer. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { verifyResponse } from '../../verify/index.ts';
import { suite } from '../support/lifetime.ts';
import { callOf, firstMcpClient, mcpClient, postMcp, textIn } from '../support/mcp.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';

const KEY = 'a-key-of-some-client';
const encoding = { type: 'int256', path: '$.price', times: '100' };
const symbol = { name: 'symbol', required: true, schema: { type: 'string', enum: ['ETH', 'BTC'] } };
const ENDPOINTS = {
  price: { encoding, parameters: [symbol, { name: 'n' }], receipt: true, description: 'The price' },
  raw: {},
  chosen: { encoding: { type: '*', path: '*', times: '*' }, strictParameters: true },
  sent: { method: 'POST', parameters: [{ name: 'list', in: 'body' }] },
  cached: { cache: { maxAge: 60_000 } },
  async: { mode: 'async' },
  stream: { mode: 'stream' },
  keyed: { auth: { type: 'apiKey', keys: [KEY] } },
  gone: {},
};
const NAMES = Object.keys(ENDPOINTS).map((name) => `api_${name}`);

describe('MCP', async () => {
  const answers = { '*': faults.json({ price: 20.64 }), '/gone': faults.serverError() };
  const settings = { mcp: { instructions: 'Prices of coins.' }, openapi: { title: 'Prices', version: '3.2.1' } };
  const { upstream, service } = await served(suite, ENDPOINTS, { answers, settings });

  for (const [mode, version] of Object.entries({ auto: '2026-07-28', legacy: '2025-11-25' })) {
    it(`the official client lists and calls by ${version}`, async (t) => {
      const client = await mcpClient(t, service, {}, mode);
      assert.equal(client.getNegotiatedProtocolVersion(), version);
      assert.deepEqual(client.getServerVersion(), { name: 'signed-data-proxy', title: 'Prices', version: '3.2.1' });
      assert.equal(client.getInstructions(), 'Prices of coins.');
      const { tools } = await client.listTools();
      const names = tools.map(({ name }) => name);
      assert.deepEqual(names, [...NAMES, 'verify_answer']);
      for (const name of ['api_price', 'api_raw', 'api_async', 'api_stream']) {
        const result = await client.callTool({ name, arguments: { symbol: 'ETH' } });
        const { structuredContent, content, isError, _meta } = result;
        const text = JSON.stringify(structuredContent);
        assert.deepEqual([isError, content], [undefined, [{ type: 'text', text }]]);
        const endpointId = service.ids[name.replace('_', '/')] ?? '';
        assert.equal(verifyResponse(structuredContent, { node: TEST_ADDRESS, endpointId }).ok, true);
        const verification = _meta?.['signed-data-proxy/verification'] as Record<string, string>;
        assert.deepEqual([verification.signer, verification.endpointId], [TEST_ADDRESS, endpointId]);
      }
    });
  }

  it('the official client of the first generation lists and calls, too', async (t) => {
    const client = await firstMcpClient(t, service);
    assert.equal((await client.listTools()).tools.length, NAMES.length + 1);
    const { structuredContent } = await client.callTool({ name: 'api_price', arguments: { symbol: 'ETH' } });
    assert.equal(verifyResponse(structuredContent, { node: TEST_ADDRESS, parameters: { symbol: 'ETH' } }).ok, true);
  });

  it('a tool says what it takes, gives and does', async (t) => {
    const { tools } = await (await mcpClient(t, service)).listTools();
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false });
    for (const { inputSchema, outputSchema } of tools) {
      ajv.compile(inputSchema as object);
      ajv.compile((outputSchema as object | undefined) ?? assert.fail());
      assert.doesNotMatch(JSON.stringify([inputSchema, outputSchema]), /\$ref/);
    }
    const [price, , chosen, sent, , , , keyed] = tools;
    assert.deepEqual(price?.inputSchema, {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      description: 'Parameters that are not listed are ignored',
      required: ['symbol'],
      properties: { symbol: { type: 'string', enum: ['ETH', 'BTC'] }, n: { type: ['string', 'number', 'boolean'] } },
      additionalProperties: true,
    });
    assert.equal(
      price.description,
      'The price. The answer is signed; `data` is the ABI encoding of (int256) of what is at $.price, times 100.',
    );
    assert.equal(price.title, 'api/price');
    assert.deepEqual(price.annotations, { readOnlyHint: true, openWorldHint: true });
    assert.deepEqual(sent?.annotations, { readOnlyHint: false, openWorldHint: true });
    assert.equal(keyed?.description, 'The answer is signed; `rawData` is what the upstream said. It needs API key.');
    assert.deepEqual(chosen?.inputSchema.required, ['_type', '_path', '_times']);
    assert.equal(chosen.inputSchema.additionalProperties, false);
  });

  it('a changed digit is no answer of the signer any more, and verify_answer says so', async (t) => {
    const client = await mcpClient(t, service);
    const verdict = async (given: Record<string, unknown>) =>
      (await client.callTool({ name: 'verify_answer', arguments: given })).structuredContent;
    const { structuredContent } = await client.callTool({ name: 'api_price', arguments: { symbol: 'ETH' } });
    const answer = structuredContent as Record<string, string>;
    const changed = { ...answer, data: answer.data?.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')) };
    const other = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
    for (const given of [{ answer }, { answer, signer: TEST_ADDRESS }])
      assert.deepEqual(await verdict(given), { valid: true, signer: TEST_ADDRESS });
    const invalid = { ...answer, signature: `0x${'ff'.repeat(64)}1b` };
    const notTheNode = `the signature is not by the node ${TEST_ADDRESS}, or something in the response was changed`;
    for (const [given, reason] of [
      [{ answer: changed }, notTheNode],
      [{ answer, signer: other }, `the response is signed by ${TEST_ADDRESS}, not by ${other}`],
      [{ answer, signer: 'me' }, 'signer must be an address, with the right checksum if it has any'],
      [{ answer: { ...answer, signatures: Array(5).fill({}) } }, 'signatures must have at most 4 entries'],
      [{ answer: invalid }, 'the signature is not valid: signature r is out of range'],
      [{ answer: {} }, 'the response has no node and no signature'],
      [{}, 'the response is no object'],
    ] as const)
      assert.deepEqual(await verdict(given), { valid: false, signer: null, reason });
  });

  it('what the service refuses is an error of the tool, in the words of the service', async (t) => {
    const client = await mcpClient(t, service);
    for (const [name, given, text, status] of [
      ['api_price', {}, 'Missing required parameter(s): symbol', 400],
      ['api_price', { symbol: 7 }, 'Invalid parameter: symbol (must be string)', 400],
      ['api_chosen', { _type: 'int256', _path: '$.price', _times: '1', a: 1 }, 'Unknown parameter: a', 400],
      ['api_keyed', {}, 'Missing X-Api-Key header', 401],
      ['api_gone', {}, 'API call failed', 502],
    ] as const) {
      const { isError, content, structuredContent, _meta } = await client.callTool({ name, arguments: given });
      assert.deepEqual([isError, content, structuredContent], [true, [{ type: 'text', text }], undefined]);
      assert.deepEqual(_meta?.['signed-data-proxy/refusal'], { status });
    }
    const unknown = client.callTool({ name: 'x'.repeat(1000), arguments: {} });
    await assert.rejects(unknown, { code: -32602, message: `Unknown tool: ${'x'.repeat(128)}` });
  });

  it('numbers that no double holds are refused, not rounded', async () => {
    const call = JSON.stringify(callOf('api_price', { symbol: 'ETH', n: 0 })).replace('0}', '12345678901234567890}');
    const { said } = await postMcp(service, call);
    assert.equal(textIn(said.result), 'Invalid parameter: n (send this number as a string)');
  });

  it('a client has its key as a bearer token, or in the header of the service', async (t) => {
    const Authorization = `Bearer ${KEY}`;
    for (const [headers, isError] of [
      [{ Authorization }, undefined],
      [{ 'X-Api-Key': KEY }, undefined],
      [{ Authorization: 'Bearer wrong' }, true],
      [{ 'X-Api-Key': 'wrong', Authorization }, true],
    ] as const) {
      const client = await mcpClient(t, service, headers);
      const result = await client.callTool({ name: 'api_keyed', arguments: {} });
      assert.equal(result.isError, isError);
      if (isError) assert.equal(textIn(result), 'Invalid API key');
    }
  });

  it('answers come from the cache, and an async endpoint keeps no record', async (t) => {
    const client = await mcpClient(t, service);
    const ask = async () => (await client.callTool({ name: 'api_cached', arguments: {} })).structuredContent;
    const first = await ask();
    assert.deepEqual(await ask(), first);
    assert.equal(upstream.requests.filter(({ path }) => path === '/cached').length, 1);
  });

  it('bodies that are no message are refused as the protocol says', async () => {
    const parse = { code: -32700, message: 'Parse error: Invalid JSON' };
    const invalid = { code: -32600, message: 'Bad Request: the request body is not a valid JSON-RPC message' };
    const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    for (const [body, status, error] of [
      ['{', 400, parse],
      ['', 400, parse],
      ['"text"', 400, invalid],
      ['{}', 400, invalid],
      ['{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}', 400, invalid],
    ] as const) {
      const { said, ...response } = await postMcp(service, body);
      assert.deepEqual([response.status, said.error, said.id], [status, error, null]);
    }
    const { said, status } = await postMcp(service, callOf('api_raw'), { 'content-type': 'text/plain' });
    const message = 'Unsupported Media Type: Content-Type must be application/json';
    assert.deepEqual([status, said.error.message], [415, message]);
    const batch = { error: 'Batches are not supported: send one message per request' };
    for (const body of [[callOf('api_raw'), callOf('api_raw')], [], deep(30_000)]) {
      const refused = await postMcp(service, body);
      assert.deepEqual([refused.status, refused.said], [400, batch]);
    }
    const listing = JSON.stringify(callOf('api_sent', { list: 'LIST' }));
    const nested = await postMcp(service, listing.replace('"LIST"', deep(20_000)));
    assert.equal(nested.said.error?.code ?? textIn(nested.said.result), 'Request body is nested too deeply');
    const large = await postMcp(service, deep(500_000));
    assert.deepEqual([large.status, large.said], [413, { error: 'Request body too large' }]);
    const wrong = await postMcp(service, callOf('api_raw', []));
    assert.equal(wrong.said.error.code, -32602);
    assert.equal((await postMcp(service, { jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202);
    const unknown = await postMcp(service, { jsonrpc: '2.0', id: 1, method: 'resources/list' });
    assert.deepEqual(unknown.said.error, { code: -32601, message: 'Method not found' });
  });

  it('there are no sessions and no streams to open: GET and DELETE are refused', async () => {
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${service.url}/mcp`, { method, headers: { Accept: 'text/event-stream' } });
      assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST']);
    }
  });

  it('a subscription is acknowledged as one to nothing, and ends at once', async () => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const headers = {
      ...{ 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
      ...{ 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'subscriptions/listen' },
    };
    const params = { notifications: { toolsListChanged: true }, _meta };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params });
    const text = await (await fetch(`${service.url}/mcp`, { method: 'POST', headers, body })).text();
    const [acknowledged, ended] = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
    assert.deepEqual(acknowledged.params.notifications, {});
    assert.equal(ended.result.resultType, 'complete');
  });
});
