/** Want of room costs nobody a payment. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { finished, type Submitted, submitted } from '../support/async.ts';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { encoding, oneApi, type RunningService, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults, holding, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const PRICE = 1_000_000n;
const MALLORY = '203.0.113.7';
const ALICE = '198.51.100.1';
const USED = 'Payment already used';
const FULL = 'Service Unavailable';
/** More often than failures give a payment back. */
const OFTEN = 6;
const SDK = new URL('../../plugins-sdk/index.ts', import.meta.url).href;

/** An endpoint called `late` has its answer from the upstream, and no room for it. */
const late = `import { Refusal } from '${SDK}';
  export default { name: 'late', setup: () => ({ hooks: { encrypt: (_, { endpoint }) => {
    if (endpoint.name === 'late') throw new Refusal(503, 'No room');
  } } }) };`;

describe('x402: want of room (503) costs nobody a payment', async () => {
  const chain = await chainFor(suite);
  const alice = payer(chain, 2);
  const { hold, release } = holding();
  const upstream = await upstreamFor(suite, { '/p': faults.json({ price: 7 }), '/held': hold });

  const answerAll = async () => {
    release();
    await upstream.untilIdle();
  };
  const api = (name: string, url: string, blocks: Record<string, object>, more: object) => {
    const endpoints = Object.entries(blocks).map(([endpoint, block]) => [endpoint, { encoding, ...block }] as const);
    return oneApi(url, Object.fromEntries(endpoints), { api: { name, ...more } }).apis;
  };
  async function start(t: TestContext, maxConcurrentApiCalls: number) {
    const auth = termsOn(chain, PRICE);
    const mode = 'async';
    const endpoints = { sync: { path: '/p' }, async: { path: '/p?async', mode }, late: { path: '/p?late' } };
    const rateLimit = { max: 1_000_000, trustForwardedFor: true, x402: { max: 1_000_000 } };
    const { files, plugins } = pluginFiles({ late });
    const config = {
      server: { rateLimit },
      settings: { plugins, maxConcurrentApiCalls },
      apis: [
        ...api('paid', upstream.url, endpoints, { auth }),
        ...api('hasty', `${upstream.url}/hasty`, endpoints, { auth, timeout: 100 }),
        ...api('free', upstream.url, { held: { mode } }, { timeout: 600_000 }),
      ],
    };
    const service = await startTestService(config, { files });
    upstream.requests.length = 0;
    t.after(async () => {
      upstream.requests.length = 0;
      await answerAll();
      await service.stop();
    });
    return service;
  }

  const send = async (service: RunningService, endpoint: string, txHash: string, address = ALICE) => {
    const proof = await proofHeader(alice, service, endpoint, txHash);
    return service.post(endpoint, {}, { 'X-Forwarded-For': address, ...proof });
  };
  /** Submits for free, as often; those that were taken. */
  const flood = async (service: RunningService, times: number, addressOf: (turn: number) => string) => {
    const taken: Submitted[] = [];
    for (let turn = 0; turn < times; turn++) {
      const response = await service.post('free/held', {}, { 'X-Forwarded-For': addressOf(turn) });
      if (response.status === 202) taken.push(await submitted(response));
      else await assertRefused(response, 503, FULL);
    }
    return taken;
  };
  const served = async (service: RunningService, txHash: string) => {
    const record = await finished(service, await submitted(await send(service, 'paid/async', txHash)));
    const { requestId: _, pollUrl: __, status, ...signed } = record;
    assert.equal(status, 'complete', JSON.stringify(record));
    assert.equal(BigInt((await verifyEncoded(signed, TEST_ADDRESS)).data), 7n);
    await assertRefused(await send(service, 'paid/async', txHash), 401, USED);
  };

  it('a payer keeps the payment, however often the store has no room', async (t) => {
    const service = await start(t, 200);
    const [first, ...rest] = await flood(service, 110, () => MALLORY);
    assert.ok(first);
    assert.equal(rest.length, 99);
    const paid = await payNative(alice, PRICE);
    for (let turn = 0; turn < OFTEN; turn++) await assertRefused(await send(service, 'paid/async', paid), 503, FULL);
    // Nor is it lost with a result that nobody has read.
    await upstream.untilRequested('/held', 100);
    await answerAll();
    await assertRefused(await send(service, 'paid/async', paid), 503, FULL);
    await finished(service, first);
    await served(service, paid);
  });

  it('nor does the wait for an upstream slot', async (t) => {
    const service = await start(t, 1);
    assert.equal((await flood(service, 1, () => MALLORY)).length, 1);
    await upstream.untilRequested('/held');
    const paid = await payNative(alice, PRICE);
    for (let turn = 0; turn < OFTEN; turn++) {
      await assertRefused(await send(service, 'hasty/sync', paid), 503, 'Server busy');
      const record = await finished(service, await submitted(await send(service, 'hasty/async', paid)));
      assert.deepEqual([record.status, record.error], ['failed', 'Server busy']);
    }
    assert.deepEqual([upstream.requests.length, upstream.requests[0]?.path], [1, '/held']);
    await answerAll();
    await served(service, paid);
    assert.ok(!service.logs.some(({ message }) => message === 'a payment was not given back once more'));
  });

  it('a 503 after the upstream was asked counts: three times, and the fourth was the last', async (t) => {
    const service = await start(t, 200);
    const paid = await payNative(alice, PRICE);
    for (let turn = 0; turn < 4; turn++) await assertRefused(await send(service, 'paid/late', paid), 503, 'No room');
    await assertRefused(await send(service, 'paid/late', paid), 401, USED);
    assert.equal(upstream.requests.length, 4);
  });

  it('what was refunded three times is given back after a 503, and not after a failure', async (t) => {
    const service = await start(t, 200);
    const paid = await payNative(alice, PRICE);
    for (let turn = 0; turn < 3; turn++) await assertRefused(await send(service, 'paid/late', paid), 503, 'No room');
    await flood(service, 100, () => MALLORY);
    for (let turn = 0; turn < OFTEN; turn++)
      await assertRefused(await send(service, 'paid/async', paid, MALLORY), 503, FULL);
    await assertRefused(await send(service, 'paid/late', paid), 503, 'No room');
    await assertRefused(await send(service, 'paid/async', paid), 401, USED);
  });
});
