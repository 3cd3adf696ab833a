/** A process is killed at each step of a payment in turn: nothing is sold twice, and nothing that was paid for is lost. */
import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import { it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { ExactEvmScheme as ExactClient } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { hostOf } from '../support/https.ts';
import { suite } from '../support/lifetime.ts';
import { tableOf } from '../support/payments.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { askedFor, PRICE, paidBy } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';
import { folderWith, launchCli, runCli } from './run.ts';
import { ADDRESS, KEY } from './service-config.ts';
import { postTo, urlOf } from './started.ts';

/** More than any payment takes. */
const MOST_STEPS = 40;

/** Leads to a server, and calls back before it hears of the n-th command about payments. */
async function steppedProxy(t: TestContext, target: number) {
  const armed = { at: 0, kill: () => undefined as void };
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.on('data', (data) => {
      const commands = data.toString('latin1').match(/sdp:x402[^\r]*/g) ?? [];
      if (armed.at > 0 && commands.length > 0) {
        armed.at -= commands.length;
        if (armed.at <= 0) {
          armed.at = 0;
          armed.kill();
          client.destroy();
          upstream.destroy();
          return;
        }
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => void client.write(data));
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  return { armed, url: `redis://${await hostOf(t, server)}` };
}

describeServers('a process that is killed at a step of a payment', async (program) => {
  const [shop, redis] = await Promise.all([shopFor(suite), redisFor(suite, program)]);
  const alice = await shop.market.wallet(1_000_000_000n);
  const bob = () => payer(shop.chain, 2);

  const start = async (t: TestContext, url: string) => {
    const native = { auth: termsOn(shop.chain, PRICE) };
    const settings = { state: { type: 'redis', url } };
    const server = { port: 0, drainDelay: 0, rateLimit: { x402: { max: 1000 } } };
    const config = { version: '1.0', ...shop.config({ exact: {}, native }, { settings, server }) };
    const cwd = await folderWith(t, { 'c.yaml': JSON.stringify(config) });
    const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
    const base = await urlOf(running);
    const [, exact = ''] = await running.output(/a\/exact (0x[0-9a-f]{64})/);
    const [, id = ''] = await running.output(/a\/native (0x[0-9a-f]{64})/);
    const post = async (endpoint: string, headers = {}) => {
      const response = await postTo(base, endpoint, headers).catch(() => undefined);
      // Of an answer that was cut off the client has nothing.
      const text = await response?.text().catch(() => undefined);
      return text === undefined ? 0 : (response?.status ?? 0);
    };
    const native0 = { ids: { native: id }, node: ADDRESS };
    return {
      running,
      cwd,
      offer: async () => askedFor(await postTo(base, exact)),
      redeem: async (transaction: string) => post(id, await proofHeader(bob(), native0, 'native', transaction)),
      buy: (headers: object) => post(exact, headers),
    };
  };
  const payments = async (t: TestContext, cwd: string, ...words: string[]) => {
    const { stdout } = await runCli(t, ['payments', ...words, '-c', 'c.yaml'], { cwd });
    return tableOf(stdout);
  };

  /** Has a payment used by a process that is killed at this step. */
  async function killedOnce(
    t: TestContext,
    at: number,
    use: (replica: Awaited<ReturnType<typeof start>>) => Promise<number>,
  ) {
    const proxy = await steppedProxy(t, redis.port);
    const replica = await start(t, proxy.url);
    let isKilled = false;
    proxy.armed.kill = () => {
      isKilled = true;
      replica.running.child.kill('SIGKILL');
    };
    proxy.armed.at = at;
    const isSold = (await use(replica)) === 200;
    // What is written after the answer.
    for (let waited = 0; waited < 20 && !isKilled; waited++) await setTimeout(50);
    if (!isKilled) replica.running.child.kill('SIGKILL');
    await replica.running.ended;
    return { isKilled, isSold };
  }

  /**
   * Has a new payment used by a process that is killed at this step.
   * @returns the payment, and how often it bought an answer; nothing beyond the last step
   */
  async function killed<P>(
    t: TestContext,
    at: number,
    pay: () => Promise<P>,
    use: (replica: Awaited<ReturnType<typeof start>>, payment: P) => Promise<number>,
  ) {
    for (let tries = 1; tries <= 5; tries++) {
      const payment = await pay();
      const { isKilled, isSold } = await killedOnce(t, at, (replica) => use(replica, payment));
      if (isKilled) return { ...payment, answers: Number(isSold) };
      if (isSold) return undefined;
      // On a busy machine the state may be late: the payment was refused before it came to this step.
      t.diagnostic(`step ${at}: refused, tried again`);
    }
    throw new Error(`step ${at}: no payment comes as far`);
  }

  it('on chain: what it held is listed, and buys one answer once an operator has freed it', async (t) => {
    const steady = await start(t, redis.url);
    let step = 1;
    for (; step < MOST_STEPS; step++) {
      await setTimeout(1000 - (Date.now() % 1000));
      const pay = async () => ({ transaction: await payNative(bob(), PRICE) });
      const used = await killed(t, step, pay, ({ redeem }, { transaction }) => redeem(transaction));
      if (used === undefined) break;
      const { transaction } = used;
      let { answers } = used;
      const open = (await payments(t, steady.cwd)).filter((one) => one.transaction === transaction);
      if ((await steady.redeem(transaction)) === 200) answers += 1;
      else if (answers === 0) {
        assert.match(open.map(({ fate }) => fate).join(), /^(?:held|redeemed)$/, `step ${step}`);
        const [freed] = await payments(t, steady.cwd, '--release', transaction, '--force');
        assert.equal(freed?.result, 'it can be used again', `step ${step}`);
        if ((await steady.redeem(transaction)) === 200) answers += 1;
      }
      assert.equal(answers, 1, `step ${step}`);
      assert.equal(await steady.redeem(transaction), 401, `step ${step}`);
      t.diagnostic(`step ${step}: ${open.map(({ fate }) => fate).join() || 'not listed'}`);
    }
    assert.ok(step > 8 && step < MOST_STEPS, `${step}`);
  });

  it('standard: it is paid once at most, and what it held is listed or can be found', async (t) => {
    const steady = await start(t, redis.url);
    const schemes = [{ network: 'eip155:*' as const, client: new ExactClient(alice) }];
    const client = x402Client.fromConfig({ schemes, spendControls: false });
    const pay = async () => client.createPaymentPayload(await steady.offer());
    const payment = async () => ({ had: await shop.market.balance(alice.address), payload: await pay() });
    let step = 1;
    for (; step < MOST_STEPS; step++) {
      const used = await killed(t, step, payment, ({ buy }, { payload }) => buy(paidBy(payload)));
      if (used === undefined) break;
      const { had, payload } = used;
      let { answers } = used;
      const { nonce } = payload.payload.authorization as { nonce: string };
      const isTaken = (await shop.market.balance(alice.address)) < had;
      const known = await payments(t, steady.cwd, nonce);
      const fates = known.map(({ fate }) => fate).join();
      if ((await steady.buy(paidBy(payload))) === 200) answers += 1;
      else if (answers === 0)
        assert.match(fates, isTaken ? /^(?:settling|settled)$/ : /^(?:held|settling)$/, `step ${step}`);
      assert.ok(answers <= 1, `step ${step}`);
      const paid = had - (await shop.market.balance(alice.address));
      assert.ok(paid === PRICE || (paid === 0n && answers === 0), `step ${step}: ${paid}`);
      // A payer from whom nothing was taken signs another one.
      if (paid === 0n) assert.equal(await steady.buy(paidBy(await pay())), 200, `step ${step}`);
      t.diagnostic(`step ${step}: ${fates || 'not listed'}, ${isTaken ? '' : 'not '}taken`);
    }
    assert.ok(step > 8 && step < MOST_STEPS, `${step}`);
  });
});
