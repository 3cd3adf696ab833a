import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { declarePaymentIdentifierExtension } from '@x402/extensions/payment-identifier';
import fc from 'fast-check';
import { assertRefused, assertRouteHeaders } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor } from '../support/service.ts';
import { inSeconds, RECIPIENT } from '../support/x402.ts';
import { askedFor, exactTerms, PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

const VALUE = 'invalid_exact_evm_payload_authorization_value';
const AFTER = 'invalid_exact_evm_payload_authorization_valid_after';
const BEFORE = 'invalid_exact_evm_payload_authorization_valid_before';

describe('x402-exact: what is asked for, and what is refused before anybody is asked', async () => {
  const { shop, alice } = await shopWithPayer(suite);
  const named = { ...exactTerms(shop.market, shop.facilitator.url), publicUrl: 'https://api.example.com/v1/' };
  const streamed = { mode: 'stream', description: 'Prices', auth: named };
  const service = await serviceFor(suite, shop.config({ sync: {}, stream: streamed }));
  const good = await payloadFor(service, 'a/sync', alice);
  await shop.facilitator.untilRequested('/supported');
  shop.facilitator.requests.length = 0;

  /** What the service asks when it starts may come late. */
  const asked = () => shop.facilitator.requests.filter(({ path }) => path !== '/supported');
  const offered = { scheme: 'exact', network: 'eip155:31337', asset: shop.market.asset, amount: String(PRICE) };
  const required = (error: string) => ({
    x402Version: 2,
    error,
    resource: { url: `/endpoints/${service.ids['a/sync']}`, description: 'a/sync', mimeType: 'application/json' },
    accepts: [{ ...offered, payTo: RECIPIENT, maxTimeoutSeconds: 300, extra: { name: 'Pay Token', version: '1' } }],
    extensions: { 'payment-identifier': declarePaymentIdentifierExtension() },
  });
  const assertAsked = async (response: Response, error: string) => {
    const text = await response.text();
    assert.equal(text, JSON.stringify(required(error)));
    // The description is for people, who have the body.
    const { description: _, ...resource } = required(error).resource;
    assert.deepEqual(await askedFor(response), { ...required(error), resource });
    assert.equal(response.status, 402);
    assertRouteHeaders(response);
    assert.equal(response.headers.get('cache-control'), 'no-store');
    assert.equal(response.headers.get('payment-response'), null);
    assert.deepEqual(asked(), []);
    assert.equal(shop.upstream.requests.length, 0);
  };
  const authorization = () => good.payload.authorization as Record<string, unknown>;
  const withAuthorization = (change: Record<string, unknown>) => ({
    ...good,
    payload: { ...good.payload, authorization: { ...authorization(), ...change } },
  });
  const withAccepted = (change: object) => ({ ...good, accepted: { ...good.accepted, ...change } });

  it('a request without a payment is told what to pay, whatever its Host says', async () => {
    await assertAsked(await service.post('a/sync', {}), 'PAYMENT-SIGNATURE header is required');
    const stream = JSON.parse(await (await service.post('a/stream', {})).text());
    const url = `https://api.example.com/v1/endpoints/${service.ids['a/stream']}`;
    assert.deepEqual(stream.resource, { url, description: 'Prices', mimeType: 'text/event-stream' });
  });

  it('the header has to hold a payment of version 2', async () => {
    const base64 = (text: string, encoding?: 'latin1') => Buffer.from(text, encoding).toString('base64');
    const texts = ['', 'not base64!', 'AAAA', base64('{'), base64('"\xff"', 'latin1')];
    for (const text of texts)
      await assertAsked(await service.post('a/sync', {}, { 'PAYMENT-SIGNATURE': text }), 'invalid_payload');
    const cases: [unknown, string][] = [
      [null, 'invalid_x402_version'],
      [{ ...good, x402Version: 1 }, 'invalid_x402_version'],
      [{ x402Version: 2 }, 'invalid_payload'],
      [{ ...good, resource: 1 }, 'invalid_payload'],
      [{ ...good, x: 'x'.repeat(10_000) }, 'invalid_payload'],
    ];
    for (const [payload, error] of cases) await assertAsked(await service.post('a/sync', {}, paidBy(payload)), error);
  });

  it('it has to pay for one of the offers', async () => {
    const other = `0x${'12'.repeat(20)}`;
    const cases: [object, string][] = [
      [withAccepted({ scheme: 'upto' }), 'unsupported_scheme'],
      [withAccepted({ network: 'eip155:1' }), 'invalid_network'],
      [withAccepted({ asset: other }), 'invalid_payment_requirements'],
      [withAccepted({ amount: String(PRICE - 1n) }), 'invalid_payment_requirements'],
      [withAccepted({ payTo: other }), 'invalid_payment_requirements'],
      [withAuthorization({ to: other }), 'invalid_exact_evm_payload_recipient_mismatch'],
      [withAuthorization({ value: String(PRICE - 1n) }), VALUE],
      [withAuthorization({ value: String(PRICE + 1n) }), VALUE],
      [withAuthorization({ validAfter: String(inSeconds(60)) }), AFTER],
      [withAuthorization({ validBefore: String(inSeconds(0)) }), BEFORE],
      [withAuthorization({ validBefore: String(inSeconds(3)) }), BEFORE],
      // The offer says 300 seconds, and clocks may differ by 900.
      [withAuthorization({ validBefore: String(inSeconds(1260)) }), BEFORE],
      [withAuthorization({ validBefore: String(2n ** 256n - 1n) }), BEFORE],
      [{ ...good, payload: { signature: '0x12', permit2Authorization: {} } }, 'unsupported_payload_type'],
    ];
    for (const [payload, error] of cases) await assertAsked(await service.post('a/sync', {}, paidBy(payload)), error);
  });

  it('its members have to be of the right shape', async () => {
    const odd = [undefined, null, 1, '', '0x', 'x', '-1', '1.0', '01', String(2n ** 256n), [], {}];
    const isInvalid = async (payload: unknown) =>
      assertAsked(await service.post('a/sync', {}, paidBy(payload)), 'invalid_payload');
    for (const name of Object.keys(authorization()))
      for (const value of odd) await isInvalid(withAuthorization({ [name]: value }));
    for (const signature of odd.filter((value) => value !== ''))
      await isInvalid({ ...good, payload: { ...good.payload, signature } });
  });

  it('whatever else the header holds', async () => {
    const codes = /^(invalid|unsupported)_\w+$/;
    const anything = fc.oneof(
      fc.base64String({ maxLength: 200 }),
      fc.json({ maxDepth: 3 }).map((text) => Buffer.from(text).toString('base64')),
      fc.record({ payload: fc.jsonValue(), accepted: fc.jsonValue() }).map((some) => {
        return Buffer.from(JSON.stringify({ ...good, ...some })).toString('base64');
      }),
    );
    const claim = fc.asyncProperty(anything, async (text) => {
      const response = await service.post('a/sync', {}, { 'PAYMENT-SIGNATURE': text });
      const { error } = (await response.json()) as { error: string };
      assert.equal(response.status, 402);
      assert.match(error, codes);
    });
    await fc.assert(claim, { numRuns: 150 });
    assert.deepEqual(asked(), []);
  });

  it('a client that tries too often is refused before its payment is read', async (t) => {
    const limited = shop.config({ sync: {} }, { server: { rateLimit: { x402Exact: { max: 2, window: 3_600_000 } } } });
    const other = await serviceFor(t, limited);
    const statuses = [];
    for (let i = 0; i < 2; i++) statuses.push((await other.post('a/sync', {}, { 'PAYMENT-SIGNATURE': 'x' })).status);
    assert.deepEqual(statuses, [402, 402]);
    const refused = await other.post('a/sync', {}, paidBy(good));
    await assertRefused(refused, 401, 'Too many x402 verification attempts — slow down');
    assert.equal((await other.post('a/sync')).status, 402);
    assert.equal(shop.facilitator.asked('/verify'), 0);
  });
});
