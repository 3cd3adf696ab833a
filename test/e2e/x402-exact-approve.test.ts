import assert from 'node:assert/strict';
import { afterEach, describe, it, type TestContext } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import { assertRefused, endpointUrl } from '../support/http.ts';
import { leavingRequest } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { ownEngine, pausing } from '../support/own-engine.ts';
import { type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually, inTime } from '../support/wait.ts';
import { askedFor, PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { type Block, shopWithPayer } from '../support/x402-shop.ts';

/** What holds up the engine's swaps with which a settlement begins; of the area of payments alone. */
let holdUp: (() => Promise<void>) | undefined;
/** What holds up those with which an identifier is taken. */
let holdUpClaim: (() => Promise<void>) | undefined;
let payments = new MemoryArea();
const own = ownEngine('x402-exact-approve', (name) =>
  pausing(name === 'x402-exact' ? payments : new MemoryArea(), (next) => {
    if (name === 'x402-exact' && next?.includes('"state":"settling"')) return holdUp?.();
    return name === 'x402-exact identifiers' && next !== undefined ? holdUpClaim?.() : undefined;
  }),
);
const LEFT = 'client of x402-exact-approve';
const noticed = { handleEvent: () => undefined };
Reflect.set(globalThis, LEFT, noticed);

/** A plugin with a function at `approve`. */
const releasing = (name: string, body: string) =>
  `export default { name: '${name}', setup: () => ({ hooks: { approve: async (_, exchange) => { ${body} } } }) };`;

describe('x402-exact: what comes between a signed answer and its settlement', async () => {
  const { shop, alice } = await shopWithPayer(suite);

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

  const strict = releasing('strict', `if (exchange.headers['x-no']) throw new Error('no');`);
  const lax = releasing('lax', 'return true;');
  for (const [what, files] of Object.entries<Record<string, string>>({
    'an operator’s plugin that keeps an answer back is asked first: nobody pays for what it refuses': {
      'strict.mjs': strict,
    },
    'a plugin that allows an answer does not speak for those who want to be paid, or for other plugins': {
      'lax.mjs': lax,
      'strict.mjs': strict,
    },
  }))
    it(what, async (t) => {
      const plugins = Object.keys(files).map((name) => ({ source: `./${name}` }));
      const { service, had, assertCostNothing, payload } = await start(t, { plugins }, files);
      const refused = await service.post('a/sync', {}, { ...paidBy(payload), 'X-No': '1' });
      await assertRefused(refused, 500, 'Internal server error');
      await assertCostNothing();
      await verifyEncoded(await send(service, payload), TEST_ADDRESS);
      assert.equal(await shop.market.balance(alice.address), had - PRICE);
    });

  const withEngine = (budget: number, ...more: object[]) => ({
    state: own.state,
    plugins: [own.plugin, { source: 'builtin:auth-x402-exact', timeout: budget }, ...more],
  });
  const isGivenBack = () => eventually(() => payments.size === 0, 'the payment to be given back');

  /** Asserts that a request is too late which is held up, and that what it would have used is as good as new. */
  const isTooLate = async (t: TestContext, id: string, hold: (wait?: () => Promise<void>) => void) => {
    const { service, had, assertCostNothing, payload } = await start(t, withEngine(3000), own.files);
    shop.facilitator.json('/verify', { isValid: true });
    let go = () => {};
    hold(() => new Promise((resolve) => (go = resolve)));
    const extensions = { 'payment-identifier': { info: { required: false, id } } };
    const refused = await send(service, { ...payload, extensions });
    await assertRefused(refused, 403, 'Plugin "auth-x402-exact" budget exhausted');
    hold();
    go();
    // What the engine still does comes in its turns.
    await isGivenBack();
    await assertCostNothing();
    const other = await payloadFor(service, 'a/sync', alice);
    await verifyEncoded(await send(service, { ...other, extensions }), TEST_ADDRESS);
    await verifyEncoded(await send(service, payload), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had - 2n * PRICE);
  };

  it('a budget that ends before the settlement begins has nothing settled, and authorisation and identifier are as good as new', (t) =>
    isTooLate(t, 'of-a-late-request', (wait) => {
      holdUp = wait;
    }));

  it('a budget that ends while an identifier is taken leaves authorisation and identifier as good as new', (t) =>
    isTooLate(t, 'of-a-late-claim-x', (wait) => {
      holdUpClaim = wait;
    }));

  it('a request whose payment the engine has lost leaves the identifier to the request that has it now', async (t) => {
    const { service, payload } = await start(t, withEngine(600_000), own.files);
    const extensions = { 'payment-identifier': { info: { required: false, id: 'of-a-lost-payment' } } };
    const waiting: (() => void)[] = [];
    t.after(() => shop.upstream.json('/p', { price: 7 }));
    shop.upstream.on('/p', async (...asked) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return faults.json({ price: 7 })(...asked);
    });
    const first = send(service, { ...payload, extensions });
    await eventually(() => waiting.length === 1);
    const { from, nonce } = Object(payload.payload.authorization);
    const name = [payload.accepted.network, payload.accepted.asset, from, nonce].join(' ').toLowerCase();
    await payments.compareAndSet(name, await payments.get(name), undefined);
    const second = send(service, { ...payload, extensions });
    await eventually(() => waiting.length === 2);
    waiting[0]?.();
    assert.equal((await askedFor(await first)).reason, 'payment_in_progress');
    const other = await payloadFor(service, 'a/sync', alice);
    assert.equal((await askedFor(await send(service, { ...other, extensions }))).reason, 'payment_in_progress');
    waiting[1]?.();
    await verifyEncoded(await second, TEST_ADDRESS);
  });

  // With two thirds of a budget for the facilitator, 200 ms are left in the second case: too few to write down what it did.
  for (const [budget, spent] of [[1200, 500] as const, [6000, 1800] as const])
    it(`a settlement does not begin that may outlast the budget of ${budget} ms, of which ${spent} are spent`, async (t) => {
      const { service, assertCostNothing, payload } = await start(t, withEngine(budget), own.files);
      holdUp = () => new Promise((resolve) => setTimeout(resolve, spent));
      assert.notEqual((await send(service, payload)).status, 200);
      await isGivenBack();
      await assertCostNothing();
    });

  it('a client that leaves before the settlement begins pays nothing', async (t) => {
    const watching = releasing('watching', `exchange.clientSignal.addEventListener('abort', globalThis['${LEFT}']);`);
    const files = { ...own.files, 'watching.mjs': watching };
    const settings = withEngine(60_000, { source: './watching.mjs' });
    const { assertCostNothing, payload, service } = await start(t, settings, files);
    let go = () => {};
    const begun = new Promise<void>((resolve) => {
      holdUp = () => {
        resolve();
        return new Promise((done) => (go = done));
      };
    });
    const leave = leavingRequest(endpointUrl(service, 'a/sync'), paidBy(payload));
    await inTime(begun, 'the payment to be verified');
    const left = new Promise<void>((resolve) => Reflect.set(noticed, 'handleEvent', resolve));
    leave();
    await inTime(left, 'the plugin to be told that the client has left');
    go();
    await isGivenBack();
    await assertCostNothing();
  });
});
