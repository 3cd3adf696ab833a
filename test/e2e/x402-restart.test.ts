/** Payments that are kept in memory are sold once, over a restart, too. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { oneApi, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

it('a payment that was redeemed before a restart is too old after it; a later one is taken', async (t) => {
  const chain = await chainFor(t);
  const upstream = await upstreamFor(t, { '/e': faults.json(7) });
  const config = oneApi(upstream.url, { e: { auth: termsOn(chain, 1n) } });
  const alice = payer(chain, 1);
  const first = await startTestService(config);
  const paid = await proofHeader(alice, first, 'api/e', await payNative(alice, 1n));
  assert.equal((await first.post('api/e', {}, paid)).status, 200);
  await first.stop();
  // The chain of the tests is two seconds ahead.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const second = await startTestService(config);
  t.after(() => second.stop());
  await assertRefused(await second.post('api/e', {}, paid), 401, 'Payment too old');
  const again = await proofHeader(alice, second, 'api/e', await payNative(alice, 1n));
  assert.equal((await second.post('api/e', {}, again)).status, 200);
  assert.equal(upstream.requests.length, 2);
});
