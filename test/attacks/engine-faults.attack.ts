/** Engines and processes that fail at any moment lose no payment and sell nothing twice. */

import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { CuttingProxy } from '../state/redis-proxy.ts';
import { redisFor } from '../state/redis-server.ts';
import { randomFrom, seed } from '../support/seed.ts';
import { faults } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { type Account, paidBy, payloadFor } from '../support/x402-exact.ts';
import { type Block, openShop, type Shop } from '../support/x402-shop.ts';
import { ask, type Bought, buy, Replica } from './replica.ts';

const PAYMENTS = 25;
const NATIVE_PRICE = 1000n;
/** States of a payment of which no end is known, and of one whose answer may have been lost with its process. */
const OPEN = new Set(['held', 'redeemed', 'settling', 'settled', 'answered']);

describe('engine faults', { concurrency: true }, () => {
  let shop: Shop;
  let alice: Account;
  /** Nonces of the authorisations that were settled on chain. */
  const settled = new Set<string>();
  /** How often the upstream failed, by what was asked for. */
  const failures = new Map<string, number>();

  before(async () => {
    shop = await openShop();
    alice = await shop.market.wallet(1_000_000_000n);
    const random = randomFrom(seed);
    shop.upstream.on('/p', async (...args) => {
      const id = new URL(args[0].url ?? '', 'http://upstream').searchParams.get('id') ?? '';
      const failed = failures.get(id) ?? 0;
      await setTimeout(random() * 300);
      // Three failures would use up a payment of the native scheme.
      if (failed >= 2 || random() < 0.7) return faults.json({ price: 7 })(...args);
      failures.set(id, failed + 1);
      return faults.serverError()(...args);
    });
    shop.facilitator.on('/settle', async (_req, res, { body }) => {
      const question = JSON.parse(body);
      const result = await shop.facilitator.settle(question);
      if (result.success) settled.add(question.paymentPayload.payload.authorization.nonce);
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
    });
  });
  after(() => shop?.close());

  function config(state: Block): Block {
    const endpoint = (by: string, more: Block = {}) => {
      const parameters = [
        { name: 'id', in: 'query' },
        { name: 'by', in: 'query', fixed: by },
      ];
      return { path: '/p', parameters, ...more };
    };
    const endpoints = {
      exact: endpoint('exact'),
      native: endpoint('native', { auth: termsOn(shop.chain, NATIVE_PRICE) }),
    };
    const rateLimit = { max: 1_000_000, x402: { max: 1_000_000 }, x402Exact: { max: 1_000_000 } };
    return shop.config(endpoints, { server: { port: 0, rateLimit }, settings: { state } });
  }

  /** Payments that are made, and have bought nothing. @param number of each scheme. @param account index of a rich one. */
  async function pay(replica: Replica, label: string, number: number, account: number): Promise<Bought[]> {
    const bought: Bought[] = [];
    const bob = payer(shop.chain, account);
    for (let n = 0; n < number; n++) {
      const service = replica as unknown as Parameters<typeof payloadFor>[0];
      const payload = await payloadFor(service, 'a/exact', alice);
      const { nonce } = payload.payload.authorization as { nonce: string };
      const common = { answers: 0, wasCut: false };
      bought.push({ ...common, scheme: 'exact', id: `${label}e${n}`, headers: paidBy(payload), nonce });
      const headers = await proofHeader(bob, replica, 'a/native', await payNative(bob, NATIVE_PRICE));
      bought.push({ ...common, scheme: 'native', id: `${label}n${n}`, headers });
    }
    return bought;
  }

  /** Buys all of it within a few seconds, while one act after another breaks something. */
  async function buyWhile(
    acts: readonly (() => Promise<void>)[],
    bought: readonly Bought[],
    replicas: [Replica, Replica],
    random: () => number,
  ) {
    let isOver = false;
    const breaking = (async () => {
      while (!isOver) {
        await setTimeout(100 + random() * 600);
        await acts[Math.floor(random() * acts.length)]?.();
      }
    })();
    await Promise.all(
      bought.map(async (one) => {
        await setTimeout(random() * 5000);
        await buy(replicas, one, random);
      }),
    );
    isOver = true;
    await breaking;
  }

  /** Sells all of it at once over two replicas, one of which is behind a connection that fails, while `fault` is done now and then. */
  async function sell(t: TestContext, label: string, account: number, end: 'SIGTERM' | 'SIGKILL') {
    const random = randomFrom(seed + account);
    const redis = await redisFor(t, 'redis-server');
    const proxy = await CuttingProxy.start(t, redis.port);
    const faulty = new Replica(t, config({ type: 'redis', url: proxy.url }));
    const steady = new Replica(t, config({ type: 'redis', url: redis.url }));
    await Promise.all([faulty.start(), steady.start()]);
    // Blocks have whole seconds: one of this second may be older than the ledger.
    await setTimeout(1100);
    const bought = await pay(steady, label, PAYMENTS, account);
    const written: string[] = [];
    const acts = [
      async () => {
        proxy.isAway = true;
        await setTimeout(100 + random() * 700);
        proxy.isAway = false;
      },
      async () => {
        redis.signal('SIGSTOP');
        await setTimeout(100 + random() * 700);
        redis.signal('SIGCONT');
      },
      async () => {
        for (const cut of ['reply', 'request'] as const) {
          proxy.cutAt(cut, random() < 0.5 ? 'redeemed' : 'reserved');
          await setTimeout(random() * 300);
        }
      },
      async () => {
        written.push(await faulty.end(end));
        await faulty.start();
      },
    ];
    await buyWhile(acts, bought, [faulty, steady], random);
    written.push(await faulty.end('SIGTERM'));
    return { bought, redis, steady, written: written.join('') };
  }

  /** What holds whatever happened: no payment has bought two answers, and none an answer for nothing. */
  function assertSoldOnce(bought: readonly Bought[]): void {
    for (const { id, answers, nonce } of bought) {
      assert.ok(answers <= 1, `${id} was sold ${answers} times`);
      if (answers === 1 && nonce !== undefined) assert.ok(settled.has(nonce), `${id} was not paid`);
    }
  }

  it('cut and frozen engines, and processes that are told to stop: each payment buys one answer', async (t) => {
    const { bought, written } = await sell(t, 'stop', 2, 'SIGTERM');
    assertSoldOnce(bought);
    const left = bought.filter(({ answers }) => answers === 0).map(({ id }) => id);
    assert.deepEqual(left, [], 'paid for nothing');
    assert.doesNotMatch(written, /paid for nothing|not known whether/);
  });

  it('processes that are killed: nothing is sold twice, and what they held is listed', async (t) => {
    const { bought, redis, steady } = await sell(t, 'kill', 3, 'SIGKILL');
    assertSoldOnce(bought);
    const outcomes = [];
    for (const one of bought.filter(({ answers }) => answers === 0)) {
      let refusal = await ask(steady, one);
      for (let tries = 0; refusal === 'API call failed' && tries < 3; tries++) refusal = await ask(steady, one);
      outcomes.push(`${one.id}: ${refusal ?? 'answered'}`);
      if (refusal === undefined) continue;
      assert.ok(one.wasCut, outcomes.at(-1));
      const keys = (await redis.command('KEYS', `sdp:x402*:v:*${one.nonce ?? one.id}*`)) as string[];
      const marks = await Promise.all(keys.map((key) => redis.command('GET', key)));
      const states = marks.map((mark) => JSON.parse(String(mark)).state);
      assert.ok(
        states.every((state) => OPEN.has(state)),
        `${outcomes.at(-1)} ${states}`,
      );
    }
    t.diagnostic(`without an answer at first: ${outcomes.join(', ')}`);
    assertSoldOnce(bought);
  });

  it('an engine that stays away when a process is told to stop: 45 s, and a line for the payer', async (t) => {
    const redis = await redisFor(t, 'redis-server');
    const proxy = await CuttingProxy.start(t, redis.port);
    const replica = new Replica(t, config({ type: 'redis', url: proxy.url }));
    await replica.start();
    await setTimeout(1100);
    const bob = payer(shop.chain, 5);
    const transaction = await payNative(bob, NATIVE_PRICE);
    const headers = await proofHeader(bob, replica, 'a/native', transaction);
    const one: Bought = { scheme: 'native', id: transaction, headers, answers: 0, wasCut: false };
    await retried(async () => {
      proxy.isAway = false;
      proxy.cutAt('reply', 'redeemed', true);
      assert.equal(await ask(replica, one), 'Payment verification unavailable');
      // A slow machine may have given up before.
      const [key = ''] = (await redis.command('KEYS', 'sdp:x402:v:0x*')) as string[];
      assert.match(String(await redis.command('GET', key)), /"state":"redeemed"/);
    });
    const began = performance.now();
    const written = await replica.end('SIGTERM');
    const took = performance.now() - began;
    assert.ok(took > 44_000 && took < 60_000, `${took}`);
    const [line = '', ...more] = written.split('\n').filter((text) => text.includes('its payer has paid for nothing'));
    assert.deepEqual(more, []);
    const fields = `requestId=0x[0-9a-f]{64} transaction=${transaction} payer=${await bob.getAddress()} `;
    assert.match(line, new RegExp(fields), written);
    assert.doesNotMatch(written, /were cut off/);
  });
});
