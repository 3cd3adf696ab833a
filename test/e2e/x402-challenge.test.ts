/** A request without payment gets the x402 challenge, and so does one whose header is no proof. */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { assertRefused, assertRouteHeaders, endpointUrl, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { exchangeRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { oneApi, type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const TOKEN = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const RECIPIENT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const ERC20 = { amount: '1500000', token: TOKEN, network: 8453 };
const NATIVE = { amount: `1${'0'.repeat(77)}`, token: '0x0000000000000000000000000000000000000000', network: 1 };
const SLOW_DOWN = 'Too many x402 verification attempts — slow down';
const INVALID = 'Invalid payment proof';
const MISMATCH = 'Payment proof signature mismatch';

const spy = pluginFile('spy', `onHttpRequest({ headers }) { note('headers', Object.keys(headers)); }`);

const soon = () => Math.floor(Date.now() / 1000) + 300;
const goodProof = () => ({ txHash: `0x${'ab'.repeat(32)}`, expiresAt: soon(), signature: `0x${'cd'.repeat(65)}` });

describe('x402: the challenge and the shape of the proof', async () => {
  const upstream = await upstreamFor(suite, { '/p': faults.json(1) });
  /** Stands where the RPC is configured: what is refused here is refused before it is asked. */
  const rpc = await upstreamFor(suite);
  after(() => assert.deepEqual(rpc.requests, []));

  const terms = { type: 'x402', rpc: rpc.url, recipient: RECIPIENT, ...ERC20 };
  const native = { ...terms, ...NATIVE, expiry: 1000 };
  const blocks = {
    paid: {},
    native: { auth: native },
    async: { mode: 'async' },
    stream: { mode: 'stream' },
    either: { auth: [terms, native] },
    keyed: { auth: [terms, { type: 'apiKey', keys: ['key'] }] },
  };
  const endpoints = Object.fromEntries(
    Object.entries(blocks).map(([name, block]) => [name, { path: `/p?${name}`, ...block }]),
  );
  const services: RunningService[] = [];
  const start = async (x402: object) => {
    const { files, plugins } = pluginFiles({ spy });
    const server = { rateLimit: { max: 1_000_000, trustForwardedFor: true, x402 } };
    const config = oneApi(upstream.url, endpoints, { api: { name: 'a', auth: terms }, server, settings: { plugins } });
    const started = await serviceFor(suite, config, { files });
    services.push(started);
    return started;
  };
  const service = await start({ max: 1_000_000 });

  const post = (on: RunningService, endpoint: string, proof?: string, headers: Record<string, string> = {}) => {
    const proofs: Record<string, string> = proof === undefined ? {} : { 'X-Payment-Proof': proof };
    return postText(endpointUrl(on, endpoint), '{}', { ...JSON_HEADERS, ...proofs, ...headers });
  };

  const challenged = async (endpoint: string, response: Response, expected: object, expiry: number) => {
    const text = await response.text();
    assert.equal(response.status, 402, text);
    assert.equal(response.headers.get('content-type'), 'application/json');
    assertRouteHeaders(response);
    const { expiresAt, ...body } = JSON.parse(text);
    const { [endpoint]: endpointId } = service.ids;
    assert.deepEqual(body, { node: TEST_ADDRESS, endpointId, recipient: RECIPIENT, ...expected });
    assert.ok(Number.isInteger(expiresAt));
    // The clock moves on between the challenge and this look at it; an hour tells seconds from milliseconds.
    assert.ok(Math.abs(expiresAt - (Date.now() + expiry) / 1000) < 3600);
    assert.ok(expiresAt <= Math.floor((Date.now() + expiry) / 1000));
    return expiresAt;
  };
  /** Asserts that the header was no proof. */
  const invalid = (response: Response) => challenged('a/paid', response, { ...ERC20, error: INVALID }, 300_000);

  describe('402 Payment required: the body is the challenge', () => {
    it('node, endpointId, amount, token, network, recipient, expiresAt and nothing else', async () => {
      const earliest = Math.floor((Date.now() + 300_000) / 1000);
      const expiresAt = await challenged('a/paid', await post(service, 'a/paid'), ERC20, 300_000);
      assert.ok(expiresAt >= earliest, 'expiry is 300000 ms by default');
    });

    it('the native asset, an amount beyond 64 bits as text, an expiry of its own', async () => {
      const earliest = Math.floor((Date.now() + 1000) / 1000);
      assert.ok((await challenged('a/native', await post(service, 'a/native'), NATIVE, 1000)) >= earliest);
    });

    it('in async and stream mode too, before anything starts', async () => {
      for (const endpoint of ['a/async', 'a/stream'])
        await challenged(endpoint, await post(service, endpoint), ERC20, 300_000);
      assert.deepEqual(upstream.requests, []);
    });

    it('a client with other credentials is asked all the same', async () => {
      const headers = { 'X-Api-Key': 'key', 'X-PAYMENT': '{}', Authorization: 'Bearer x' };
      await challenged('a/paid', await post(service, 'a/paid', undefined, headers), ERC20, 300_000);
    });

    it('the body of the request comes first', async () => {
      await assertRefused(await postText(endpointUrl(service, 'a/paid'), '{'), 400, 'Request body must be valid JSON');
    });
  });

  describe('a header that is no proof is 402: the challenge with the error', () => {
    const good = { txHash: `0x${'ab'.repeat(32)}`, expiresAt: 4_000_000_000, signature: `0x${'cd'.repeat(65)}` };
    const json = (changes: object) => JSON.stringify({ ...good, ...changes });
    const proofs: [string, string][] = [
      ['empty', ''],
      ['no JSON', 'x'],
      ['half of one', JSON.stringify(good).slice(0, -1)],
      ['two', JSON.stringify(good).repeat(2)],
      ['a list of two', `${JSON.stringify(good)}, ${JSON.stringify(good)}`],
      ['base64', Buffer.from(JSON.stringify(good)).toString('base64')],
      ['percent-encoded', encodeURIComponent(JSON.stringify(good))],
      ['null', 'null'],
      ['true', 'true'],
      ['a number', '1'],
      ['a string', '"proof"'],
      ['the hash alone', good.txHash],
      ['an empty array', '[]'],
      ['an array of one', JSON.stringify([good])],
      ['an empty object', '{}'],
      ['in __proto__', `{"__proto__":${JSON.stringify(good)}}`],
      ['nested', '['.repeat(4000)],
      ['larger than any proof', json({ padding: 'x'.repeat(8000) })],
      ['as large as headers may be', 'x'.repeat(15_000)],
      ...['txHash', 'expiresAt', 'signature'].flatMap((field): [string, string][] => [
        [`${field} missing`, json({ [field]: undefined })],
        [`${field} null`, json({ [field]: null })],
        [`${field} an array`, json({ [field]: [good.txHash] })],
        [`${field} an object`, json({ [field]: {} })],
        [`${field} a boolean`, json({ [field]: true })],
        [`${field} empty`, json({ [field]: '' })],
      ]),
      ['txHash a number', json({ txHash: 1 })],
      ['txHash of 31 bytes', json({ txHash: `0x${'ab'.repeat(31)}` })],
      ['txHash of 33 bytes', json({ txHash: `0x${'ab'.repeat(33)}` })],
      ['txHash of 31.5 bytes', json({ txHash: good.txHash.slice(0, -1) })],
      ['txHash without 0x', json({ txHash: 'ab'.repeat(32) })],
      ['txHash with 0X', json({ txHash: `0X${'ab'.repeat(32)}` })],
      ['txHash with a letter that is no hex', json({ txHash: `0x${'ag'.repeat(32)}` })],
      ['txHash with a line end', json({ txHash: `0x${'ab'.repeat(31)}a\n` })],
      ['signature of 64 bytes', json({ signature: `0x${'cd'.repeat(64)}` })],
      ['signature of 66 bytes', json({ signature: `0x${'cd'.repeat(66)}` })],
      ['signature without 0x', json({ signature: 'cd'.repeat(65) })],
      ['signature with white space', json({ signature: ` 0x${'cd'.repeat(65)}` })],
      ['expiresAt a text', json({ expiresAt: '4000000000' })],
      ['expiresAt with a fraction', json({ expiresAt: 4e9 + 0.5 })],
      ['expiresAt negative', json({ expiresAt: -1 })],
      ['expiresAt infinite', JSON.stringify(good).replace('4000000000', '1e999')],
      ['expiresAt beyond exact integers', JSON.stringify(good).replace('4000000000', '9007199254740993')],
    ];
    for (const [what, proof] of proofs) {
      it(what, async () => invalid(await post(service, 'a/paid', proof)));
    }

    it('of the endpoint that was asked, and logged with the reason', async () => {
      const before = service.logs.length;
      await challenged('a/native', await post(service, 'a/native', '{}'), { ...NATIVE, error: INVALID }, 1000);
      const logged = service.logs.slice(before);
      assert.ok(JSON.stringify(logged).includes('txHash is no 32-byte hex'));
      assert.ok(logged.every(({ level }) => level === 'info' || level === 'debug'));
    });

    it('two headers', async () => {
      const path = new URL(endpointUrl(service, 'a/paid')).pathname;
      const headers = { ...JSON_HEADERS, 'X-Payment-Proof': JSON.stringify(good), 'Content-Length': '0' };
      const head = requestHead(`POST ${path}`, headers);
      const text = await exchangeRaw(service.url, `${head}x-payment-proof: ${JSON.stringify(good)}\r\n\r\n`);
      const { status, body } = parseResponse(text);
      assert.deepEqual([status, JSON.parse(body).error], [402, INVALID]);
    });
  });

  describe('a well-formed proof that nobody signed costs no question to the node', () => {
    for (const endpoint of ['a/paid', 'a/native', 'a/async', 'a/stream']) {
      it(`${endpoint}: 401 Payment proof signature mismatch`, async () => {
        await assertRefused(await post(service, endpoint, JSON.stringify(goodProof())), 401, MISMATCH);
        assert.deepEqual(upstream.requests, []);
      });
    }

    it('upper-case hex and further members make no difference', async () => {
      const { txHash, ...rest } = goodProof();
      const proof = { ...rest, txHash: `0x${txHash.slice(2).toUpperCase()}`, more: 1 };
      await assertRefused(await post(service, 'a/paid', JSON.stringify(proof)), 401, MISMATCH);
    });
  });

  describe('the proof bucket (limits: "separate per-IP bucket server.rateLimit.x402.max")', async () => {
    let last = 0;
    const client = () => ({ 'X-Forwarded-For': `192.0.2.${++last}` });
    const limited = await start({ max: 2, window: 3_600_000 });
    /** Asserts that the header was looked at, which costs a draw. */
    const isChecked = async (endpoint: string, headers: Record<string, string>, proof = 'x') => {
      const response = await post(limited, endpoint, proof, headers);
      const { error } = (await response.json()) as { readonly error: string };
      assert.deepEqual([response.status, error], [402, INVALID]);
    };
    const isSlowed = async (endpoint: string, headers: Record<string, string>, proof = 'x') => {
      const response = await post(limited, endpoint, proof, headers);
      assert.equal(response.headers.get('retry-after'), null);
      await assertRefused(response, 401, SLOW_DOWN);
    };

    it('every request with the header draws, whatever its shape and its endpoint; then 401', async () => {
      const headers = client();
      await isChecked('a/paid', headers, '');
      await isChecked('a/native', headers, 'x'.repeat(10_000));
      for (const endpoint of ['a/paid', 'a/async'])
        for (const proof of ['null', JSON.stringify(goodProof())]) await isSlowed(endpoint, headers, proof);
    });

    it('the unpaid challenge does not draw and is not limited', async () => {
      const headers = client();
      const isAsked = async () => assert.equal((await post(limited, 'a/paid', undefined, headers)).status, 402);
      for (let count = 0; count < 5; count++) await isAsked();
      for (let count = 0; count < 2; count++) await isChecked('a/paid', headers);
      await isSlowed('a/paid', headers);
      await isAsked();
    });

    it('each client has its own; IPv6 by /64', async () => {
      await isChecked('a/paid', client());
      const from = (address: string) => ({ 'X-Forwarded-For': address });
      for (const address of ['2001:db8::1', '2001:db8::2']) await isChecked('a/paid', from(address));
      await isSlowed('a/paid', from('2001:db8::3'));
    });

    it('a request draws once, however many payments the endpoint accepts', async () => {
      const headers = client();
      for (let count = 0; count < 2; count++) await isChecked('a/either', headers);
      await isSlowed('a/either', headers);
    });

    it('a key that opens does not help past it: x402 comes first there and draws', async () => {
      const headers = { ...client(), 'X-Api-Key': 'key' };
      for (let count = 0; count < 3; count++) assert.equal((await post(limited, 'a/keyed', 'x', headers)).status, 200);
      await isSlowed('a/paid', headers);
    });

    it('holds 30 proofs a minute unless configured', async () => {
      const usual = await start({});
      const sent = Array.from({ length: 45 }, async () => (await post(usual, 'a/paid', 'x')).text());
      const texts = await Promise.all(sent);
      const checked = texts.filter((text) => JSON.parse(text).error === INVALID).length;
      const slowed = texts.filter((text) => text === JSON.stringify({ error: SLOW_DOWN })).length;
      assert.equal(checked + slowed, 45);
      assert.ok(checked >= 30 && slowed > 0, `${checked} were checked`);
    });
  });

  it('the proof header is hidden from plugins, and neither log nor upstream ever shows it', async () => {
    notes.clear();
    await post(service, 'a/paid', JSON.stringify({ ...goodProof(), marker: 'never-shown' }));
    await post(service, 'a/keyed', 'never-shown', { 'X-Api-Key': 'key' });
    assert.equal(notes.of('headers').length, 2);
    for (const names of notes.of('headers')) {
      assert.ok(Array.isArray(names) && names.includes('content-type'));
      assert.ok(!names.includes('x-payment-proof') && !names.includes('x-api-key'));
    }
    const seen = JSON.stringify([services.map(({ logs }) => logs), upstream.requests]);
    for (const secret of ['never-shown', 'abababab', 'cdcdcdcd']) assert.ok(!seen.includes(secret), secret);
  });
});
