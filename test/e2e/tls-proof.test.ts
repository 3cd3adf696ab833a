/** A TLS proof of the upstream's answer goes out with it, where one is asked for. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { verifyMessage } from 'ethers';
import { finished, submitted } from '../support/async.ts';
import { endpointUrl } from '../support/http.ts';
import { leavingFetch } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { acts, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { type Asked, attestor, honest, type TestProof } from '../support/reclaim.ts';
import { encoding, oneApi, type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

const responseMatches = [
  { type: 'regex', value: '"price":(?<price>\\d+)' },
  { type: 'regex', value: '[{}]' },
];

/** The names of headers that belong to a connection and not to a message. */
const CONNECTION = ['host', 'connection', 'content-length', 'accept-encoding'];

function assertProof(proof: unknown): TestProof {
  const { claim, signatures } = proof as TestProof;
  assert.deepEqual(Object.keys(proof as object), ['claim', 'signatures']);
  const members = Object.keys(claim).sort().join();
  assert.equal(members, 'context,epoch,identifier,owner,parameters,provider,timestampS');
  assert.deepEqual(Object.keys(signatures).sort(), ['attestorAddress', 'claimSignature']);
  const text = `${claim.identifier}\n${claim.owner}\n${claim.timestampS}\n${claim.epoch}`;
  assert.equal(verifyMessage(text, signatures.claimSignature), attestor.address);
  return { claim, signatures };
}

describe('TLS proofs', async () => {
  const { files, plugins } = pluginFiles({ puppet: puppetFile('puppet') }, { puppet: { timeout: 10_000 } });

  const upstream = await upstreamFor(suite);
  const gateway = await upstreamFor(suite);
  const parameters = [
    { name: 'ids' },
    { name: 'tier', in: 'header' },
    { name: 'session', in: 'cookie', secret: true, fixed: 'cookie-secret' },
    { name: 'X-Key', in: 'header', secret: true, fixed: 'parameter-secret' },
  ];
  const body = [...parameters, { name: 'q', in: 'body' }, { name: 'list', in: 'body', default: 'x' }];
  const place = [{ name: 'id', in: 'path', required: true }];
  const proved = (more: object) => ({ responseMatches, ...more });
  const endpoints = {
    raw: proved({ parameters }),
    encoded: proved({ encoding, parameters }),
    stream: proved({ encoding, mode: 'stream' }),
    async: proved({ encoding, mode: 'async' }),
    cached: proved({ encoding, cache: { maxAge: 600_000 } }),
    path: proved({ path: "/of/{id}?a='b'", parameters: [...place, ...parameters] }),
    post: proved({ method: 'POST', parameters: body }),
    put: proved({ method: 'PUT', parameters: body }),
    patch: proved({ method: 'PATCH', parameters: body }),
    bodiless: proved({ method: 'POST' }),
    delete: proved({ method: 'DELETE' }),
    plain: { encoding },
    none: { encoding, responseMatches: [] },
    failing: { responseMatches },
  };
  const reclaim = { type: 'reclaim', gatewayUrl: `${gateway.url}/prove` };
  const gatewayUrl = `${reclaim.gatewayUrl}?key=gateway-secret`;
  const proof = { ...reclaim, gatewayUrl, attestors: [attestor.address.toLowerCase()] };
  const api = { headers: { Authorization: 'Bearer api-secret', 'Accept-Language': 'en' } };
  const config = oneApi(`${upstream.url}/v1`, endpoints, { api, settings: { plugins, proof } });
  const service = await serviceFor(suite, config, { files });

  beforeEach(() => {
    upstream.on('*', faults.json({ price: 3 }));
    gateway.on('/prove', honest);
    acts.clear();
    upstream.requests.length = 0;
    gateway.requests.length = 0;
    service.logs.length = 0;
  });

  const warnings = () => service.logs.filter(({ level }) => level === 'warn' || level === 'error');

  /** What the gateway was asked last. */
  const asked = (): Asked => JSON.parse(gateway.requests.at(-1)?.body ?? '');

  it('a raw answer carries its proof', async () => {
    const answer = await verifyRaw(await service.post('api/raw', { ids: 'eth' }), TEST_ADDRESS);
    const { claim } = assertProof(answer.proof);
    const asked = { url: `${upstream.url}/v1/raw?ids=eth`, method: 'GET', body: '' };
    assert.deepEqual(JSON.parse(claim.parameters), { ...asked, responseMatches, responseRedactions: [] });
    assert.equal(claim.provider, 'http');
    assert.deepEqual(Object.keys(answer).sort(), ['endpointId', 'node', 'proof', 'rawData', 'signature', 'timestamp']);
    assert.deepEqual(warnings(), []);
  });

  it('so does an encoded one', async () => {
    const { data, proof } = await verifyEncoded(await service.post('api/encoded'), TEST_ADDRESS);
    assertProof(proof);
    assert.equal(BigInt(data), 3n);
  });

  it('so does the frame of a stream', async () => {
    const text = await (await service.post('api/stream')).text();
    const frame = JSON.parse(text.replace(/^data: ?/, ''));
    assert.equal(frame.done, true);
    assertProof((await verifyEncoded(frame, TEST_ADDRESS)).proof);
  });

  it('so does a complete async record', async () => {
    const record = await finished(service, await submitted(await service.post('api/async')));
    assertProof((await verifyEncoded(record, TEST_ADDRESS)).proof);
  });

  it('a cached answer keeps its proof, letter by letter, and nobody is asked again', async () => {
    const first = await (await service.post('api/cached')).text();
    assertProof(JSON.parse(first).proof);
    assert.equal(await (await service.post('api/cached')).text(), first);
    assert.equal(gateway.requests.length, 1);
  });

  it('the gateway is asked by POST for JSON, with just these members', async () => {
    await service.post('api/raw');
    const [request] = gateway.requests;
    assert.ok(request);
    assert.equal(`${request.method} ${request.path}`, 'POST /prove?key=gateway-secret');
    assert.equal(request.headers['content-type'], 'application/json');
    assert.deepEqual(Object.keys(asked()), ['url', 'method', 'headers', 'body', 'responseMatches']);
    assert.deepEqual(asked().responseMatches, responseMatches);
  });

  const sent: [string, Record<string, unknown>][] = [
    ['raw', { ids: 'a b&c=d%2f+é😀', tier: 'gold' }],
    ['encoded', {}],
    ['path', { id: 'x/y?#ü', ids: "it's" }],
    ['post', { q: { nested: [1, 'é', null, 'a\nb'] }, ids: 'eth' }],
    ['put', { q: '"quoted"\\ 😀' }],
    ['patch', { q: 1e21, tier: 'silver' }],
    ['bodiless', {}],
  ];
  for (const [endpoint, parameters] of sent) {
    it(`what the gateway gets is what went upstream: ${endpoint} ${JSON.stringify(parameters)}`, async () => {
      const answer = await verify(await service.post(`api/${endpoint}`, parameters));
      assertProof(answer.proof);
      const [went] = upstream.requests;
      assert.ok(went);
      const { url, method, headers, body } = asked();
      assert.deepEqual([url, method, body], [upstream.url + went.path, went.method, went.body]);
      const names = Object.keys(went.headers).filter((name) => !CONNECTION.includes(name));
      const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
      assert.deepEqual(lower, Object.fromEntries(names.map((name) => [name, went.headers[name]])));
      assert.equal(lower.authorization, 'Bearer api-secret');
      if (endpoint !== 'bodiless') {
        assert.equal(lower.cookie, 'session=cookie-secret');
        assert.equal(lower['x-key'], 'parameter-secret');
      }
    });
  }

  const verify = async (response: Response) => {
    const body = JSON.parse(await response.clone().text());
    return 'data' in body ? verifyEncoded(response, TEST_ADDRESS) : verifyRaw(response, TEST_ADDRESS);
  };

  it('parameters that a plugin changed count as changed', async () => {
    acts.set('puppet onBeforeApiCall', () => ({ parameters: { ids: 'btc' } }));
    const { proof } = await verifyRaw(await service.post('api/raw', { ids: 'eth' }), TEST_ADDRESS);
    assert.equal(JSON.parse(assertProof(proof).claim.parameters).url, `${upstream.url}/v1/raw?ids=btc`);
  });

  it('a proof is of what the upstream answers, whatever a plugin makes of it', async () => {
    acts.set('puppet onAfterApiCall', () => ({ data: { price: 9 } }));
    const { data, proof } = await verifyEncoded(await service.post('api/encoded'), TEST_ADDRESS);
    assertProof(proof);
    assert.equal(BigInt(data), 9n);
  });

  it('no header is in the proof, and nothing secret in the log', async () => {
    for (const endpoint of ['raw', 'post', 'path']) {
      const text = await (await service.post(`api/${endpoint}`, { id: 'x', q: 1 })).text();
      assertProof(JSON.parse(text).proof);
      assert.doesNotMatch(text, /secret|authorization|cookie/i);
    }
    gateway.on('/prove', faults.text('{"gateway-secret"'));
    await service.post('api/raw');
    gateway.on('/prove', faults.reset());
    await service.post('api/raw');
    assert.equal(warnings().length, 2);
    assert.doesNotMatch(JSON.stringify(service.logs), /secret|bearer/i);
  });

  it('nobody is asked where there is nothing to prove: no patterns, DELETE, an upstream that failed', async () => {
    for (const endpoint of ['plain', 'none', 'delete'])
      assert.ok(!('proof' in (await verify(await service.post(`api/${endpoint}`)))));
    upstream.on('*', faults.serverError());
    assert.equal((await service.post('api/failing')).status, 502);
    assert.deepEqual(gateway.requests, []);
    assert.ok(!warnings().some(({ message }) => message.includes('proof')));
  });

  /** Asks an endpoint, and leaves while the gateway is at work. */
  async function leaveDuringProof(from: RunningService, endpoint: string): Promise<void> {
    const leave = leavingFetch(endpointUrl(from, endpoint));
    await gateway.until(() => gateway.open === 1);
    await leave();
    await gateway.untilIdle();
    await eventually(() => from.logs.find(({ message }) => / 499 /.test(message)), 'the line of the request');
  }

  it('a client that leaves ends the question', async () => {
    gateway.on('/prove', faults.hang());
    await leaveDuringProof(service, 'api/encoded');
    assert.deepEqual(warnings(), []);
  });

  it('nobody can have an answer without its proof cached by leaving early', async (t) => {
    const e = proved({ encoding, cache: { maxAge: 600_000 } });
    const fresh = await serviceFor(t, oneApi(upstream.url, { e }, { settings: { proof: reclaim } }));
    gateway.on('/prove', faults.hang());
    await leaveDuringProof(fresh, 'api/e');
    gateway.on('/prove', honest);
    assertProof((await verifyEncoded(await fresh.post('api/e'), TEST_ADDRESS)).proof);
  });

  it('`none`, or no setting, asks nobody', async (t) => {
    for (const settings of [{ proof: 'none' }, {}]) {
      const off = await serviceFor(t, oneApi(upstream.url, { e: { encoding, responseMatches } }, { settings }));
      assert.ok(!('proof' in (await verifyEncoded(await off.post('api/e'), TEST_ADDRESS))));
      assert.ok(!off.logs.some(({ message }) => message.includes('proof')));
    }
    assert.deepEqual(gateway.requests, []);
  });
});
