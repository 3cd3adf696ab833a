/** A client never pays for nothing, and no failing request is free for ever. */

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { beforeEach, describe, it } from 'node:test';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import { finished, submitted } from '../support/async.ts';
import { chainFor } from '../support/chain.ts';
import { assertRefused, endpointUrl } from '../support/http.ts';
import { leavingFetch } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { ownEngine, pausing } from '../support/own-engine.ts';
import { notes, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { encoding, oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler, type Upstream, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually, retried } from '../support/wait.ts';
import { NATIVE, payer, payNative, proofHeader, relay, termsOn } from '../support/x402.ts';

const PRICE = 1_000_000n;
const USED = 'Payment already used';
const FAILED = 'API call failed';
const MODES = ['sync', 'stream', 'async'] as const;

/** What holds up the engine behind the swap by which a payment is redeemed. */
let holdUp: (() => Promise<void>) | undefined;
/** Told of each payment that the engine is to forget; where it throws, the engine does not. */
let forgets: (() => void) | undefined;
const own = ownEngine('x402-redemption', () => {
  const pause = (next?: string) => (next?.includes('"state":"redeemed"') ? holdUp?.() : undefined);
  const area = pausing(new MemoryArea(), pause);
  const compareAndSet: typeof area.compareAndSet = async (...args) => {
    if (args[0].startsWith('0x') && args[2] === undefined) forgets?.();
    return area.compareAndSet(...args);
  };
  return { ...area, compareAndSet };
});

describe('x402: a client never pays for nothing, and no failing request is free for ever', async () => {
  const chain = await chainFor(suite);
  const alice = payer(chain, 2);
  const upstream = await upstreamFor(suite);
  const rpc = await upstreamFor(suite);
  const auth = termsOn({ chainId: chain.chainId, url: rpc.url }, PRICE);
  const { files, plugins } = pluginFiles({ spy: puppetFile('spy') });
  const server = { rateLimit: { max: 1_000_000, x402: { max: 1_000_000 } } };
  const blocks = {
    ...Object.fromEntries(MODES.map((mode) => [mode, { mode }])),
    strict: { parameters: [{ name: 'q', required: true }] },
    keyed: { auth: [auth, { type: 'apiKey', keys: ['key'] }] },
    cached: { cache: { maxAge: 60_000 } },
  };
  const endpoints = Object.fromEntries(
    Object.entries(blocks).map(([name, block]) => [name, { path: `/p?${name}`, encoding, ...block }]),
  );
  const api = { name: 'a', auth, timeout: 5000 };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { server, settings: { plugins }, api }), {
    files,
  });
  /** Has a server wait with what it does, and @returns what lets it go on. */
  const waiting = (server: Upstream, path: string, handler: Handler) => {
    const events = new EventEmitter();
    const released = once(events, 'go on');
    server.on(path, async (...args) => {
      await released;
      return handler(...args);
    });
    return () => events.emit('go on');
  };

  beforeEach(() => {
    upstream.json('/p', { price: 7 });
    rpc.on('/', relay(chain.url));
    upstream.requests.length = 0;
    rpc.requests.length = 0;
    service.logs.length = 0;
    notes.clear();
  });

  const headers = (endpoint: string, txHash: string, by = alice) => proofHeader(by, service, `a/${endpoint}`, txHash);
  const send = async (endpoint: string, txHash: string, parameters = {}, more: Record<string, string> = {}) =>
    service.post(`a/${endpoint}`, parameters, { ...(await headers(endpoint, txHash)), ...more });
  const answered = async (response: Response) => {
    const { data } = await verifyEncoded(response, TEST_ADDRESS);
    assert.equal(BigInt(data), 7n);
  };

  /** What the client learns in the end: an error text, or nothing for a signed answer. */
  const outcomeOf = async (mode: (typeof MODES)[number], response: Response): Promise<unknown> => {
    if (response.status === 202) {
      const record = await finished(service, await submitted(response));
      if (record.status === 'complete') await verifyEncoded(record, TEST_ADDRESS);
      return record.error;
    }
    const text = await response.text();
    if (response.status !== 200) return JSON.parse(text).error;
    await verifyEncoded(JSON.parse(mode === 'stream' ? text.slice('data: '.length) : text), TEST_ADDRESS);
    return undefined;
  };

  for (const mode of MODES) {
    describe(`${mode} mode`, () => {
      it('a failure gives the payment back before the client sees it', async () => {
        const paid = await payNative(alice, PRICE);
        upstream.on('/p', faults.serverError());
        assert.equal(await outcomeOf(mode, await send(mode, paid)), FAILED);
        upstream.json('/p', { price: 7 });
        assert.equal(await outcomeOf(mode, await send(mode, paid)), undefined);
        assert.equal(await outcomeOf(mode, await send(mode, paid)), USED);
        assert.equal(upstream.requests.length, 2);
      });

      it('three times; the fourth failure was the last, which the operator hears, without the proof', async () => {
        const paid = await payNative(alice, PRICE);
        upstream.on('/p', faults.serverError());
        const outcomes: unknown[] = [];
        for (let attempt = 0; attempt < 7; attempt++) outcomes.push(await outcomeOf(mode, await send(mode, paid)));
        assert.deepEqual(outcomes, [FAILED, FAILED, FAILED, FAILED, USED, USED, USED]);
        assert.equal(upstream.requests.length, 4);
        upstream.json('/p', { price: 7 });
        assert.equal(await outcomeOf(mode, await send(mode, paid)), USED);
        const kept = service.logs.filter(({ message }) => message === 'a payment was not given back once more');
        const sold = {
          endpoint: `a/${mode}`,
          amount: String(PRICE),
          network: `eip155:${chain.chainId}`,
          asset: NATIVE,
        };
        const told = kept.map(({ level, fields: { requestId: _, ...fields } }) => [level, fields]);
        assert.deepEqual(told, [['warn', { ...sold, transaction: paid, payer: alice.address }]]);
        assert.ok(!JSON.stringify(service.logs).includes('signature'));
      });

      it('while the request runs the payment is taken', async () => {
        const paid = await payNative(alice, PRICE);
        const release = waiting(upstream, '/p', faults.serverError());
        const first = send(mode, paid);
        await upstream.until(() => upstream.requests.length === 1);
        await assertRefused(await send(mode, paid), 401, USED);
        await assertRefused(await send('strict', paid), 401, USED);
        release();
        assert.equal(await outcomeOf(mode, await first), FAILED);
        upstream.json('/p', { price: 7 });
        assert.equal(await outcomeOf(mode, await send(mode, paid)), undefined);
      });
    });
  }

  it('the cap is one for all endpoints and all kinds of failure', async () => {
    const paid = await payNative(alice, PRICE);
    upstream.on('/p', faults.serverError());
    assert.equal(await outcomeOf('sync', await send('sync', paid)), FAILED);
    await assertRefused(await send('strict', paid), 400, 'Missing required parameter(s): q');
    upstream.json('/p', {});
    await assertRefused(await send('stream', paid), 502, 'No value found at path: $.price');
    await assertRefused(await send('strict', paid), 400, 'Missing required parameter(s): q');
    upstream.json('/p', { price: 7 });
    await assertRefused(await send('strict', paid, { q: 1 }), 401, USED);
  });

  it('checks that fail are no refunds', async () => {
    const paid = await payNative(alice, PRICE);
    rpc.on('/', faults.serverError());
    for (let attempt = 0; attempt < 6; attempt++)
      await assertRefused(await send('sync', paid), 401, 'Payment verification unavailable');
    rpc.on('/', relay(chain.url));
    upstream.on('/p', faults.serverError());
    for (let attempt = 0; attempt < 3; attempt++) await assertRefused(await send('sync', paid), 502, FAILED);
    rpc.on('/', faults.serverError());
    await assertRefused(await send('sync', paid), 401, 'Payment verification unavailable');
    rpc.on('/', relay(chain.url));
    await assertRefused(await send('sync', paid), 502, FAILED);
    await assertRefused(await send('sync', paid), 401, USED);
  });

  it('an answer out of the cache is an answer', async () => {
    await answered(await send('cached', await payNative(alice, PRICE)));
    const paid = await payNative(alice, PRICE);
    await answered(await send('cached', paid));
    await assertRefused(await send('cached', paid), 401, USED);
    assert.equal(upstream.requests.length, 1);
  });

  it('a client that leaves while the upstream works gets nothing back', async () => {
    for (const mode of ['sync', 'stream']) {
      upstream.on('/p', faults.hang());
      const paid = await payNative(alice, PRICE);
      const asked = upstream.requests.length;
      const leave = leavingFetch(endpointUrl(service, `a/${mode}`), await headers(mode, paid));
      await upstream.until(() => upstream.requests.length === asked + 1);
      await leave();
      await upstream.untilIdle();
      await served(499);
      upstream.json('/p', { price: 7 });
      await assertRefused(await send(mode, paid), 401, USED);
      service.logs.length = 0;
    }
  });

  it('a client that leaves while the chain is asked has used nothing', async () => {
    const paid = await payNative(alice, PRICE);
    rpc.on('/', faults.hang());
    const leave = leavingFetch(endpointUrl(service, 'a/sync'), await headers('sync', paid));
    await rpc.until(() => rpc.requests.length === 3);
    await assertRefused(await send('sync', paid), 401, USED);
    await leave();
    await rpc.untilIdle();
    await served(499);
    rpc.on('/', relay(chain.url));
    await answered(await send('sync', paid));
  });

  it('a budget that ends while the payment is redeemed leaves it as it was', async (t) => {
    const plugins = [own.plugin, { source: 'builtin:auth-x402', timeout: 3000 }];
    const more = { settings: { state: own.state, plugins }, api: { name: 'a', auth } };
    const config = oneApi(upstream.url, { sync: { path: '/p', encoding } }, more);
    const held = await serviceFor(t, config, { files: own.files });
    const proof = await proofHeader(alice, held, 'a/sync', await payNative(alice, PRICE));
    let go = () => {};
    holdUp = () => new Promise((resolve) => (go = resolve));
    await assertRefused(await held.post('a/sync', {}, proof), 403, 'Plugin "auth-x402" budget exhausted');
    await assertRefused(await held.post('a/sync', {}, proof), 401, USED);
    holdUp = undefined;
    go();
    // What the engine still does comes in its turns.
    await retried(async () => answered(await held.post('a/sync', {}, proof)));
    await assertRefused(await held.post('a/sync', {}, proof), 401, USED);
  });

  it('a payment that the engine has yet to be told is free is not called used, nor after a reload', async (t) => {
    const more = { settings: { state: own.state, plugins: [own.plugin] }, api: { name: 'a', auth } };
    const config = oneApi(upstream.url, { sync: { path: '/p', encoding } }, more);
    const held = await serviceFor(t, config, { files: own.files });
    const proof = await proofHeader(alice, held, 'a/sync', await payNative(alice, PRICE));
    const unavailable = async () =>
      assertRefused(await held.post('a/sync', {}, proof), 401, 'Payment verification unavailable');
    forgets = () => {
      throw new Error('out of order');
    };
    rpc.on('/', faults.serverError());
    await unavailable();
    rpc.on('/', relay(chain.url));
    await unavailable();
    assert.ok((await reload(held, config)).done);
    await unavailable();
    const forgotten = new Promise<void>((resolve) => (forgets = resolve));
    await forgotten;
    forgets = undefined;
    await answered(await held.post('a/sync', {}, proof));
    await assertRefused(await held.post('a/sync', {}, proof), 401, USED);
  });

  it('nobody else can stand in the payer’s way', async () => {
    const paid = await payNative(alice, PRICE);
    const bob = payer(chain, 3);
    const release = waiting(rpc, '/', relay(chain.url));
    const his = service.post('a/sync', {}, await headers('sync', paid, bob));
    await rpc.until(() => rpc.requests.length === 3);
    rpc.on('/', relay(chain.url));
    await answered(await send('sync', paid));
    release();
    await assertRefused(await his, 401, 'Payment proof signature mismatch');
    await assertRefused(await send('sync', paid), 401, USED);
  });

  it('a key that opens where the proof does not leaves the payment as it was', async () => {
    const paid = await payNative(alice, PRICE);
    rpc.on('/', faults.serverError());
    await answered(await send('keyed', paid, {}, { 'X-Api-Key': 'key' }));
    rpc.on('/', relay(chain.url));
    await answered(await send('keyed', paid));
    await answered(await send('keyed', paid, {}, { 'X-Api-Key': 'key' }));
    await assertRefused(await send('keyed', paid), 401, 'Missing X-Api-Key header');
  });

  /** Resolves when the service has logged a request as ended with that status. */
  const served = (status: number) =>
    eventually(() => service.logs.find(({ message }) => message.includes(` ${status} `)), `status ${status}`);
});
