import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { afterEach, describe, it, type TestContext } from 'node:test';
import { jwtVerify } from 'jose';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { type RunningService, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler, startUpstream, type Upstream, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { askedFor, PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

const UNAVAILABLE = 'Payment verification unavailable';
const KEY_ID = '9d1a1b1e-key';
/** Where the hosted one is, below its host. */
const BASE = '/platform/v2/x402';

/** Keys as the platform hands them out: what is configured, and what it checks tokens by. */
type Key = readonly [secret: string, alg: string, key: KeyObject];
const cdpKeys = (): Readonly<Record<string, Key>> => {
  const ed = generateKeyPairSync('ed25519');
  const { d = '', x = '' } = ed.privateKey.export({ format: 'jwk' });
  const halves = [d, x].map((half) => Buffer.from(half, 'base64url'));
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = (type: 'pkcs8' | 'sec1') => ec.privateKey.export({ type, format: 'pem' }).toString();
  return {
    'an Ed25519 key': [Buffer.concat(halves).toString('base64'), 'EdDSA', ed.publicKey],
    'an EC key': [pem('pkcs8'), 'ES256', ec.publicKey],
    'an EC key in one line': [pem('pkcs8').replaceAll('\n', '\\n'), 'ES256', ec.publicKey],
    'an EC key of the older form': [pem('sec1'), 'ES256', ec.publicKey],
  };
};

describe('x402-exact: facilitators', async () => {
  const running: RunningService[] = [];

  const [shop, first] = await Promise.all([shopFor(suite), upstreamFor(suite)]);
  const alice = await shop.market.wallet(1_000_000n);

  afterEach(async () => {
    for (const service of running.splice(0)) await service.stop();
    shop.facilitator.reset();
    shop.facilitator.requests.splice(0);
    first.requests.splice(0);
  });

  const start = async (facilitator: unknown, budget = 600_000) => {
    const settings = { plugins: [{ source: 'builtin:auth-x402-exact', timeout: budget }] };
    const config = shop.config({ e: {} }, { settings }, { auth: { ...shop.auth, facilitator } });
    const service = await startTestService(config);
    running.push(service);
    return service;
  };
  /** One that goes away between the two questions. */
  const leaving = async (t: TestContext) => {
    const facilitator = await startUpstream({ '/verify': shop.facilitator.true['/verify'] });
    shop.upstream.on('/p', async (...request) => {
      await facilitator.close();
      return faults.json({ price: 7 })(...request);
    });
    t.after(() => shop.upstream.json('/p', { price: 7 }));
    return facilitator;
  };
  const buy = async (service: RunningService) =>
    service.post('a/e', {}, paidBy(await payloadFor(service, 'a/e', alice)));
  /** Asserts that a request is answered and just its price was paid. */
  const assertSold = async (service: RunningService) => {
    const before = await shop.market.balance(alice.address);
    await verifyEncoded(await buy(service), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), before - PRICE);
  };
  const asked = ({ requests }: Upstream, path: string) => requests.filter((request) => request.path === path).length;
  /** Has the first one answer as the true one does. */
  const truly = (path: '/verify' | '/settle' | '/supported') => first.on(path, shop.facilitator.true[path]);

  describe('Coinbase’s', () => {
    for (const [name, [keySecret, alg, key]] of Object.entries(cdpKeys())) {
      it(`gets a token with each request, made for it alone, by ${name}`, async () => {
        const tokens = new Set<string>();
        const checked =
          (path: '/verify' | '/settle' | '/supported'): Handler =>
          async (req, res, recorded) => {
            const token = /^Bearer (\S+)$/.exec(req.headers.authorization ?? '')?.[1] ?? '';
            const { payload, protectedHeader } = await jwtVerify(token, key, { algorithms: [alg], issuer: 'cdp' });
            assert.deepEqual(payload.uris, [`${req.method} ${req.headers.host}${BASE}${path}`]);
            assert.equal(payload.sub, KEY_ID);
            const { nonce, ...header } = protectedHeader;
            assert.deepEqual(header, { alg, kid: KEY_ID, typ: 'JWT' });
            assert.match(String(nonce), /^[0-9a-f]{32}$/);
            assert.equal((payload.exp ?? 0) - (payload.nbf ?? 0), 120);
            assert.equal(req.headers['x-mine'], 'yes');
            tokens.add(token);
            return shop.facilitator.true[path](req, res, recorded);
          };
        for (const path of ['/verify', '/settle', '/supported'] as const) first.on(`${BASE}${path}`, checked(path));
        const auth = { type: 'cdp', keyId: KEY_ID, keySecret };
        const service = await start({ url: `${first.url}${BASE}/`, headers: { 'X-Mine': 'yes' }, auth });
        await assertSold(service);
        await assertSold(service);
        await first.untilRequested(`${BASE}/supported`);
        assert.equal(tokens.size, 5);
        assert.doesNotMatch(JSON.stringify(service.logs), /facilitator/);
      });
    }

    it('refuses another key: the payment is not taken, and neither log nor client sees the key', async () => {
      const [[keySecret] = ['']] = Object.values(cdpKeys());
      for (const path of ['/verify', '/settle', '/supported']) first.on(path, faults.json({ secret: keySecret }, 401));
      const service = await start({ url: first.url, auth: { type: 'cdp', keyId: KEY_ID, keySecret } });
      const response = await buy(service);
      assert.equal(JSON.stringify([...response.headers]).includes(keySecret), false);
      await assertRefused(response, 401, UNAVAILABLE);
      const log = JSON.stringify(service.logs);
      assert.match(log, /verify: HTTP status 401/);
      assert.equal(log.includes(keySecret) || log.includes('eyJ'), false);
    });
  });

  const halfway = {
    'ends the connection': faults.reset(),
    'has a bad day': faults.serverError(),
    'never answers': faults.hang(),
    'makes no sense': faults.html(),
  };
  const { 'ends the connection': resets, ...others } = halfway;
  const down = { 'ends connections': resets, ...others, 'refuses the credentials': faults.json({}, 401) };
  for (const [what, handler] of Object.entries(down)) {
    it(`the next one is asked where the preferred one ${what}, and then until that may be up again`, async () => {
      first.on('/verify', handler);
      truly('/supported');
      const service = await start([first.url, shop.facilitator.url], 12_000);
      await assertSold(service);
      assert.deepEqual([asked(first, '/verify'), asked(first, '/settle')], [1, 0]);
      assert.match(JSON.stringify(service.logs), /failed: the next one is asked/);
      await assertSold(service);
      assert.equal(asked(first, '/verify'), 1);
      assert.equal(asked(shop.facilitator, '/settle'), 2);
    });
  }

  it('the next one is asked where nobody listens at the preferred one', async () => {
    const gone = await startUpstream();
    await gone.close();
    await assertSold(await start([{ url: gone.url }, shop.facilitator.url]));
  });

  it('what the preferred one says of a payment is what counts', async () => {
    first.on('/verify', faults.json({ isValid: false, invalidReason: 'insufficient_funds' }));
    const response = await buy(await start([first.url, shop.facilitator.url]));
    assert.deepEqual([response.status, (await askedFor(response)).error], [402, 'insufficient_funds']);
    assert.equal(asked(shop.facilitator, '/verify'), 0);
  });

  it('all of them down: the payment is as it was', async () => {
    first.on('/verify', faults.serverError());
    shop.facilitator.on('/verify', faults.serverError());
    const service = await start([first.url, shop.facilitator.url]);
    const headers = paidBy(await payloadFor(service, 'a/e', alice));
    await assertRefused(await service.post('a/e', {}, headers), 401, UNAVAILABLE);
    shop.facilitator.reset();
    await verifyEncoded(await service.post('a/e', {}, headers), TEST_ADDRESS);
  });

  for (const [what, handler] of Object.entries(halfway)) {
    it(`a settlement that may have begun is nobody else’s: the one that ${what}`, async () => {
      truly('/verify');
      first.on('/settle', handler);
      const service = await start([first.url, shop.facilitator.url], 12_000);
      const before = await shop.market.balance(alice.address);
      await assertRefused(await buy(service), 401, UNAVAILABLE);
      assert.deepEqual([asked(first, '/settle'), asked(shop.facilitator, '/settle')], [1, 0]);
      assert.equal(await shop.market.balance(alice.address), before);
    });
  }

  it('a settlement that failed is nobody else’s', async () => {
    truly('/verify');
    const answer = { success: false, errorReason: 'insufficient_funds', transaction: '', network: shop.market.network };
    first.on('/settle', faults.json(answer));
    const response = await buy(await start([first.url, shop.facilitator.url]));
    assert.deepEqual([response.status, (await askedFor(response)).error], [402, 'insufficient_funds']);
    assert.equal(asked(shop.facilitator, '/settle'), 0);
  });

  it('one that nobody can have heard of is settled by the next one, once', async (t) => {
    const gone = await leaving(t);
    await assertSold(await start([gone.url, shop.facilitator.url]));
    assert.equal(asked(gone, '/verify'), 1);
    assert.equal(asked(shop.facilitator, '/settle'), 1);
  });

  it('one that nobody at all can have heard of took nothing, and the payment is good yet', async (t) => {
    const service = await start((await leaving(t)).url);
    const [had, headers] = [await shop.market.balance(alice.address), paidBy(await payloadFor(service, 'a/e', alice))];
    await assertRefused(await service.post('a/e', {}, headers), 401, UNAVAILABLE);
    assert.equal(await shop.market.balance(alice.address), had);
    // A stop tells what it still owes.
    await service.stop();
    const log = JSON.stringify(service.logs);
    assert.match(log, /a payment was not settled/);
    assert.doesNotMatch(log, /it is not known whether a payment was settled/);
  });
});
