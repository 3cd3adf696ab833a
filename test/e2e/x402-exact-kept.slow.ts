/** No payer takes the room of others for answers that are kept. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { askedFor, exactTerms, paidBy } from '../support/x402-exact.ts';

const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`;
const PAYER = `0x${'a1'.repeat(20)}`;
const OTHER = `0x${'b2'.repeat(20)}`;
const ASSET = `0x${'c3'.repeat(20)}`;
/** Requests at once. */
const WIDTH = 32;

/** A service whose facilitator, a stand-in, finds each payment good and settles it. */
async function start(t: TestContext, settings: object = {}) {
  const upstream = await upstreamFor(t);
  upstream.json('/verify', { isValid: true });
  upstream.json('/settle', { success: true, transaction: hex(32), network: 'eip155:31337' });
  upstream.json('/p', { price: 7 });
  upstream.json('/long', 'x'.repeat(32_000));
  const settled = () => upstream.requests.filter(({ path }) => path === '/settle').length;
  const config = oneApi(
    upstream.url,
    { e: { path: '/p' }, long: {} },
    {
      server: { rateLimit: { max: 1_000_000, x402Exact: { max: 1_000_000 } } },
      settings,
      api: { name: 'a', auth: exactTerms({ network: 'eip155:31337', asset: ASSET }, upstream.url) },
    },
  );
  const service = await serviceFor(t, config);
  return { service, settled };
}

async function buyer(service: RunningService, endpoint: string) {
  const { accepts, resource } = await askedFor(await service.post(endpoint));
  const [accepted] = accepts;
  return (from: string, id: string) => {
    const validBefore = String(Math.floor(Date.now() / 1000) + 600);
    const { payTo: to, amount: value } = accepted;
    const authorization = { from, to, value, validAfter: '0', validBefore, nonce: hex(32) };
    const extensions = { 'payment-identifier': { info: { required: false, id } } };
    const payload = { signature: hex(65), authorization };
    return service.post(endpoint, {}, paidBy({ x402Version: 2, resource, accepted, payload, extensions }));
  };
}

const ids = (count: number) =>
  Array.from({ length: count }, (_, index) => `identifier-${String(index).padStart(6, '0')}`);

/** @returns how many of each status. */
async function all(work: readonly (() => Promise<Response>)[]): Promise<Readonly<Record<number, number>>> {
  const counts: Record<number, number> = {};
  const left = [...work];
  const turn = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const response = await next();
      await response.arrayBuffer();
      counts[response.status] = (counts[response.status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, turn));
  return counts;
}

describe('x402-exact: room for answers that are kept', () => {
  it('however many a payer buys, none is paid twice', async (t) => {
    const { service, settled } = await start(t);
    const buy = await buyer(service, 'a/e');
    const many = ids(2100).map((id) => () => buy(PAYER, id));
    assert.deepEqual(await all(many), { 200: 2100 });
    assert.deepEqual(await all(many), { 200: 2100 });
    assert.equal(settled(), 2100);
  });

  it('with state, a payer has so many bytes kept, and buys on', async (t) => {
    const state = { type: 'file', path: join(await folderWith(t), 'state') };
    const { service } = await start(t, { state });
    const buy = await buyer(service, 'a/long');
    const twelveMiB = ids(400);
    assert.deepEqual(await all(twelveMiB.map((id) => () => buy(PAYER, id))), { 200: 400 });
    // The same again by another authorisation, which the stand-in of a facilitator finds to be the payer's.
    const again = await all(twelveMiB.map((id) => () => buy(PAYER, id)));
    assert.deepEqual(Object.keys(again), ['200', '409']);
    assert.ok(Number(again[200]) >= 127 && Number(again[200]) <= 172, JSON.stringify(again));
    const other = await buy(OTHER, 'one-of-another-payer');
    assert.equal(other.status, 200);
    assert.equal(await (await buy(OTHER, 'one-of-another-payer')).text(), await other.text());
  });
});
