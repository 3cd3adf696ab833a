import assert from 'node:assert/strict';
import { request } from 'node:http';
import { afterEach, describe, it, type TestContext } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import { assertRefused, endpointUrl, eventually, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';
import { PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { type Block, shopFor } from '../support/x402-shop.ts';

const ENGINE = 'engine of x402-exact-approve';
/** What holds up the engine's swaps with which a settlement begins; of the area of payments alone. */
let holdUp: (() => Promise<void>) | undefined;
/** What holds up those with which an identifier is taken. */
let holdUpClaim: (() => Promise<void>) | undefined;
let payments = new MemoryArea();
Reflect.set(globalThis, ENGINE, (name: string) => {
  const area = name === 'x402-exact' ? payments : new MemoryArea();
  const compareAndSet: MemoryArea['compareAndSet'] = async (...args) => {
    const result = await area.compareAndSet(...args);
    if (name === 'x402-exact' && args[2]?.includes('"state":"settling"')) await holdUp?.();
    if (name === 'x402-exact identifiers' && args[2] !== undefined) await holdUpClaim?.();
    return result;
  };
  return { compareAndSet, get: area.get.bind(area), takeTokens: area.takeTokens.bind(area) };
});
const LEFT = 'client of x402-exact-approve';
const noticed = { handleEvent: () => undefined };
Reflect.set(globalThis, LEFT, noticed);
const engineFile = `const open = () => ({ start: async () => undefined, doubts: () => [], close: async () => undefined,
    area: globalThis[${JSON.stringify(ENGINE)}] });
  const schema = { type: 'object', properties: {} };
  export default { name: 'held-engine', engines: { held: { schema, processes: 'one', timeout: 'none', open } }, setup: () => ({}) };`;

/** A plugin with a function at `approve`. */
const releasing = (name: string, body: string) =>
  `export default { name: '${name}', setup: () => ({ hooks: { approve: async (_, exchange) => { ${body} } } }) };`;

describe('x402-exact: what comes between a signed answer and its settlement', async () => {
  const shop = await shopFor(suite);
  const alice = await shop.market.wallet(1_000_000n);

  afterEach(() => {
    holdUp = undefined;
    holdUpClaim = undefined;
    shop.facilitator.reset();
  });

  async function start(t: TestContext, settings: Block, files: Readonly<Record<string, string>>) {
    payments = new MemoryArea();
    const service = await serviceFor(t, shop.config({ sync: {} }, { settings }), { files });
    const had = await shop.market.balance(alice.address);
    const asked = shop.facilitator.asked('/settle');
    const assertCostNothing = async () => {
      assert.equal(shop.facilitator.asked('/settle'), asked);
      assert.equal(await shop.market.balance(alice.address), had);
    };
    return { service, had, assertCostNothing, payload: await payloadFor(service, 'a/sync', alice) };
  }
  const send = (service: RunningService, payload: PaymentPayload) => service.post('a/sync', {}, paidBy(payload));

  it('an operator’s plugin that keeps an answer back is asked first: nobody pays for what it refuses', async (t) => {
    const strict = releasing('strict', `if (exchange.headers['x-no']) throw new Error('no');`);
    const plugins = [{ source: './strict.mjs' }];
    const { service, had, assertCostNothing, payload } = await start(t, { plugins }, { 'strict.mjs': strict });
    await assertRefused(
      await service.post('a/sync', {}, { ...paidBy(payload), 'X-No': '1' }),
      500,
      'Internal server error',
    );
    await assertCostNothing();
    await verifyEncoded(await send(service, payload), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had - PRICE);
  });

  it('a plugin that allows an answer does not speak for those who want to be paid, or for other plugins', async (t) => {
    const strict = releasing('strict', `if (exchange.headers['x-no']) throw new Error('no');`);
    const plugins = [{ source: './lax.mjs' }, { source: './strict.mjs' }];
    const files = { 'lax.mjs': releasing('lax', 'return true;'), 'strict.mjs': strict };
    const { service, had, assertCostNothing, payload } = await start(t, { plugins }, files);
    const refused = await service.post('a/sync', {}, { ...paidBy(payload), 'X-No': '1' });
    await assertRefused(refused, 500, 'Internal server error');
    await assertCostNothing();
    await verifyEncoded(await send(service, payload), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had - PRICE);
  });

  const withEngine = (budget: number) => ({
    state: { type: 'held' },
    plugins: [{ source: './engine.mjs' }, { source: 'builtin:auth-x402-exact', timeout: budget }],
  });
  const files = { 'engine.mjs': engineFile };

  it('a budget that ends before the settlement begins has nothing settled, and authorisation and identifier are as good as new', async (t) => {
    const { service, had, assertCostNothing, payload } = await start(t, withEngine(3000), files);
    shop.facilitator.json('/verify', { isValid: true });
    let go = () => {};
    holdUp = () => new Promise((resolve) => (go = resolve));
    const extensions = { 'payment-identifier': { info: { required: false, id: 'of-a-late-request' } } };
    const refused = await send(service, { ...payload, extensions });
    await assertRefused(refused, 403, 'Plugin "auth-x402-exact" budget exhausted');
    holdUp = undefined;
    go();
    // What the engine still does comes in its turns.
    await eventually(() => (payments.size === 0 ? true : undefined), 'the payment to be given back');
    await assertCostNothing();
    const other = await payloadFor(service, 'a/sync', alice);
    await verifyEncoded(await send(service, { ...other, extensions }), TEST_ADDRESS);
    await verifyEncoded(await send(service, payload), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had - 2n * PRICE);
  });

  it('a budget that ends while an identifier is taken leaves authorisation and identifier as good as new', async (t) => {
    const { service, had, payload } = await start(t, withEngine(3000), files);
    shop.facilitator.json('/verify', { isValid: true });
    let go = () => {};
    holdUpClaim = () => new Promise((resolve) => (go = resolve));
    const extensions = { 'payment-identifier': { info: { required: false, id: 'of-a-late-claim-x' } } };
    const refused = await send(service, { ...payload, extensions });
    await assertRefused(refused, 403, 'Plugin "auth-x402-exact" budget exhausted');
    holdUpClaim = undefined;
    go();
    await eventually(() => (payments.size === 0 ? true : undefined), 'the payment to be given back');
    const other = await payloadFor(service, 'a/sync', alice);
    await verifyEncoded(await send(service, { ...other, extensions }), TEST_ADDRESS);
    await verifyEncoded(await send(service, payload), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had - 2n * PRICE);
  });

  it('a settlement does not begin that may outlast the budget', async (t) => {
    const { service, assertCostNothing, payload } = await start(t, withEngine(1200), files);
    holdUp = () => new Promise((resolve) => setTimeout(resolve, 500));
    assert.notEqual((await send(service, payload)).status, 200);
    await eventually(() => (payments.size === 0 ? true : undefined), 'the payment to be given back');
    await assertCostNothing();
  });

  it('a client that leaves before the settlement begins pays nothing', async (t) => {
    const { plugins, ...settings } = withEngine(60_000);
    const watching = releasing('watching', `exchange.client.addEventListener('abort', globalThis['${LEFT}']);`);
    const { assertCostNothing, payload, service } = await start(
      t,
      { ...settings, plugins: [...plugins, { source: './watching.mjs' }] },
      { ...files, 'watching.mjs': watching },
    );
    let go = () => {};
    const begun = new Promise<void>((resolve) => {
      holdUp = () => {
        resolve();
        return new Promise((done) => (go = done));
      };
    });
    const headers = { ...JSON_HEADERS, ...paidBy(payload) };
    const sent = request(endpointUrl(service, 'a/sync'), { method: 'POST', headers });
    sent.on('error', () => undefined);
    sent.end('{}');
    await begun;
    const left = new Promise<void>((resolve) => Reflect.set(noticed, 'handleEvent', resolve));
    sent.socket?.resetAndDestroy();
    await left;
    go();
    await eventually(() => (payments.size === 0 ? true : undefined), 'the payment to be given back');
    await assertCostNothing();
  });
});
