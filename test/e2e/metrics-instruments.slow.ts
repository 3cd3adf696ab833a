/** What each feature measures is what has happened. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { generateToyKeys } from '../fhe/keys.ts';
import { paths, startRelayer } from '../fhe/relayer.ts';
import { startFheService } from '../fhe/service.ts';
import { startChain } from '../support/chain.ts';
import { type Scrape, scrape, scrapeAfter, scrapeUntil } from '../support/metrics.ts';
import { gateway, honest, signedProof, stranger } from '../support/reclaim.ts';
import { visit } from '../support/served.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, type Upstream, upstreamFor } from '../support/upstream.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const metrics = { port: 0 };

function startPrices(t: TestContext): Promise<Upstream> {
  return upstreamFor(t, { '*': faults.json({ price: 7, v: 200 }), '/broken': faults.serverError() });
}

async function ask(service: RunningService, name: string, headers?: Record<string, string>): Promise<number> {
  const response = await service.post(`api/${name}`, undefined, headers);
  await response.text();
  return response.status;
}

/** A service whose endpoint `either` takes two prices or a key, and the others one price. */
async function startShop(t: TestContext, proofs: number) {
  const upstream = await startPrices(t);
  const chain = await startChain();
  t.after(() => chain.stop());
  const auth = termsOn(chain, 1000n);
  const either = { auth: [termsOn(chain, 2000n), auth, { type: 'apiKey', keys: ['key'] }] };
  const server = { rateLimit: { x402: { max: proofs, window: 3_600_000 } } };
  const endpoints = { plain: {}, broken: {}, either };
  const config = oneApi(upstream.url, endpoints, { api: { auth }, server, settings: { metrics } });
  return { service: await serviceFor(t, config), chain };
}

describe('what features measure', () => {
  it('payments: every request with a proof is redeemed, refused or limited; what was redeemed may be refunded or kept', async (t) => {
    const PROOFS = 15;
    const { service, chain } = await startShop(t, PROOFS);
    const alice = payer(chain, 2);
    const paid = await payNative(alice, 1000n);
    const second = await payNative(alice, 1000n);
    const third = await payNative(alice, 1000n);
    const proofFor = (name: string, txHash: string) => proofHeader(alice, service, `api/${name}`, txHash);
    const outcomes = async () => (await scrapeAfter(service, requests)).happened('x402_proofs_total');
    let requests = 0;
    const asks = async (status: number, name: string, headers?: Record<string, string>) => {
      requests += 1;
      assert.equal(await ask(service, name, headers), status);
    };
    await asks(402, 'plain');
    await asks(502, 'broken', await proofFor('broken', paid));
    await asks(200, 'plain', await proofFor('plain', paid));
    assert.deepEqual(await outcomes(), { redeemed: 2, refunded: 1 });
    // Used, unknown to the chain, signed by another, expired, no proof at all.
    await asks(401, 'plain', await proofFor('plain', paid));
    await asks(401, 'plain', await proofFor('plain', `0x${'1'.repeat(64)}`));
    await asks(401, 'plain', await proofHeader(payer(chain, 3), service, 'api/plain', second));
    await asks(401, 'plain', {
      'X-Payment-Proof': `{"txHash":"${second}","expiresAt":1,"signature":"0x${'1b'.repeat(65)}"}`,
    });
    await asks(402, 'plain', { 'X-Payment-Proof': 'nonsense' });
    assert.deepEqual(await outcomes(), { redeemed: 2, refunded: 1, refused: 5 });
    // A request counts once, although two payments are looked for, and although a key opens.
    await asks(200, 'either', await proofFor('either', second));
    await asks(200, 'either', { 'X-Payment-Proof': 'nonsense', 'X-Api-Key': 'key' });
    assert.deepEqual(await outcomes(), { redeemed: 3, refunded: 1, refused: 6 });
    for (let turn = 0; turn < 4; turn++) await asks(502, 'broken', await proofFor('broken', third));
    assert.deepEqual(await outcomes(), { redeemed: 7, refunded: 4, kept: 1, refused: 6 });
    for (let turn = 13; turn < PROOFS; turn++) await asks(402, 'plain', { 'X-Payment-Proof': 'nonsense' });
    for (let turn = 0; turn < 3; turn++) await asks(401, 'plain', await proofFor('plain', second));
    assert.deepEqual(await outcomes(), { redeemed: 7, refunded: 4, kept: 1, refused: 8, limited: 3 });
  });

  it('TLS proofs: attached, failed, abandoned', async (t) => {
    const upstream = await startPrices(t);
    const attestors = await upstreamFor(t, { '*': honest });
    const proof = { type: 'reclaim', gatewayUrl: attestors.url };
    const responseMatches = [{ type: 'regex', value: 'price' }];
    const endpoints = { proven: { responseMatches }, plain: {} };
    const service = await serviceFor(t, oneApi(upstream.url, endpoints, { settings: { metrics, proof } }));
    for (const name of ['proven', 'plain', 'proven']) assert.equal(await ask(service, name), 200);
    const elsewhere = 'http://elsewhere.example/';
    attestors.on(
      '*',
      gateway((asked) => signedProof({ ...asked, url: elsewhere }, { signer: stranger })),
    );
    assert.equal(await ask(service, 'proven'), 200);
    const { length } = attestors.requests;
    attestors.on('*', faults.hang());
    const { leave, outcome } = visit(service, 'api/proven');
    await attestors.until(() => attestors.requests.length > length);
    leave();
    assert.equal(await outcome, 'left');
    const found = await scrapeUntil(service, (now) => now.happened('tls_proofs_total').abandoned !== undefined);
    assert.deepEqual(found.happened('tls_proofs_total'), { attached: 2, failed: 1, abandoned: 1 });
  });

  it('FHE: workers, their queue, and encryptions', async (t) => {
    const upstream = await startPrices(t);
    const relayer = await startRelayer({ keys: generateToyKeys() });
    t.after(() => relayer.close());
    const service = await startFheService(relayer, upstream, { own: { queue: 1 }, settings: { metrics } });
    t.after(() => service.stop());
    const gauges = (found: Scrape) => [found.value('fhe_workers_busy'), found.value('fhe_queue')].join();
    assert.equal(gauges(await scrape(service)), '0,0');
    const release = relayer.hold();
    const first = visit(service, 'api/small');
    await relayer.upstream.untilRequested(paths.submit);
    await scrapeUntil(service, (found) => gauges(found) === '1,0');
    const second = visit(service, 'api/small');
    await scrapeUntil(service, (found) => gauges(found) === '1,1');
    assert.equal(await ask(service, 'small'), 502);
    second.leave();
    assert.equal(await second.outcome, 'left');
    // Until then its place in the queue is taken.
    await scrapeUntil(service, (found) => found.table('fhe_encryption_seconds_count').abandoned === 1);
    const third = visit(service, 'api/small');
    await scrapeUntil(service, (found) => gauges(found) === '1,1');
    release();
    assert.deepEqual(await Promise.all([first.outcome, third.outcome]), [200, 200]);
    const found = await scrapeUntil(service, (now) => gauges(now) === '0,0');
    assert.deepEqual(found.table('fhe_encryption_seconds_count'), { failed: 1, abandoned: 1, ok: 2 });
  });

  it('nothing, where a feature is not used', async (t) => {
    const upstream = await startPrices(t);
    const service = await serviceFor(t, oneApi(upstream.url, { plain: {} }, { settings: { metrics } }));
    const { text } = await scrape(service);
    assert.doesNotMatch(text, /^signed_data_proxy_\w*(cache|x402|tls|fhe)/m);
  });
});
