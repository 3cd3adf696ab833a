/** Payments are shown and released over processes. */

import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { ExactEvmScheme as ExactClient } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { startService } from '../../service/index.ts';
import { createLog } from '../../service/log.ts';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { leavingFetch } from '../support/leaving-client.ts';
import { endsWith, suite } from '../support/lifetime.ts';
import { tableOf } from '../support/payments.ts';
import { eventually, inTime, retried } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { askedFor, PRICE, paidBy } from '../support/x402-exact.ts';
import { type Block, shopWithPayer } from '../support/x402-shop.ts';
import { COUNTED, folderWith, kill, launchCli, runCli } from './run.ts';
import { ADDRESS, KEY } from './service-config.ts';
import { postTo, urlOf } from './started.ts';

const EXACT = /a\/exact (0x[0-9a-f]{64})/;
const NATIVE = /a\/native (0x[0-9a-f]{64})/;

/** Services and commands look for the socket in one folder. */
const TEMPORARY = { TMPDIR: tmpdir() };

describe('payments of processes', async () => {
  const { shop, alice } = await shopWithPayer(suite);

  const bob = () => payer(shop.chain, 2);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference to a variable
  const headers = { 'X-Key': '${UPSTREAM_KEY}' };
  /** A folder with the config of a service, of which commands know neither the signing key nor a variable. */
  const folderOf = (t: TestContext, state?: Block, workers = 1) => {
    const native = { auth: termsOn(shop.chain, PRICE) };
    const settings = state === undefined ? {} : { state };
    const server = { port: 0, drainDelay: 0, workers };
    const config = { version: '1.0', ...shop.config({ exact: {}, native }, { settings, server }, { headers }) };
    return folderWith(t, { 'c.yaml': JSON.stringify(config) });
  };
  const variables = { SERVICE_PRIVATE_KEY: KEY, UPSTREAM_KEY: 'k' };
  /** What clients do with the endpoints of a service. */
  const clientsOf = (url: string, exact: string, native: string) => {
    const proofOf = (transaction: string) =>
      proofHeader(bob(), { ids: { native }, node: ADDRESS }, 'native', transaction);
    const redeem = async (transaction: string) => postTo(url, native, await proofOf(transaction));
    const leaving = async (transaction: string) =>
      leavingFetch(`${url}/endpoints/${native}`, await proofOf(transaction));
    return { redeem, leaving, buy: (headers = {}) => postTo(url, exact, headers) };
  };
  const start = async (t: TestContext, cwd: string) => {
    const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env: { ...COUNTED, ...TEMPORARY, ...variables } });
    const [, exact = ''] = await running.output(EXACT);
    const [, native = ''] = await running.output(NATIVE);
    return { running, ...clientsOf(await urlOf(running), exact, native) };
  };
  /** In the process of the test: only a process that is killed must be another one. */
  const startHere = async (t: TestContext, cwd: string) => {
    let written = '';
    const settings = { level: 'info', format: 'text', colour: false } as const;
    const log = createLog(settings, { write: (line) => (written += line) });
    const { url } = await endsWith(t, startService({ file: join(cwd, 'c.yaml'), env: variables, log }));
    const [, exact = ''] = EXACT.exec(written) ?? [];
    const [, native = ''] = NATIVE.exec(written) ?? [];
    const logged = (pattern: RegExp) => eventually(() => pattern.test(written), `${pattern} in the log`);
    return { logged, ...clientsOf(url, exact, native) };
  };
  const payments = (t: TestContext, cwd: string, ...words: string[]) =>
    runCli(t, ['payments', ...words, '-c', 'c.yaml'], { cwd, env: TEMPORARY });
  const fates = ({ stdout }: { readonly stdout: string }) => tableOf(stdout).map(({ fate }) => fate);
  /** Blocks have whole seconds: one of this second may be older than the ledger of payments. */
  const nextSecond = () => setTimeout(1000 - (Date.now() % 1000));

  it('in a file: what was redeemed by a process that was killed is released, and buys an answer of the next one', async (t) => {
    const cwd = await folderOf(t, { type: 'file', path: 'state' });
    t.after(() => shop.upstream.json('/p', { price: 7 }));
    shop.upstream.on('/p', () => undefined);
    const first = await start(t, cwd);
    await nextSecond();
    const transaction = await payNative(bob(), PRICE);
    const asked = shop.upstream.requests.length;
    const lost = first.redeem(transaction).catch(() => undefined);
    await retried(() => assert.equal(shop.upstream.requests.length, asked + 1));
    await kill(first.running);
    await lost;

    const shown = await payments(t, cwd, transaction);
    const [{ requestId = '', ...record } = {}] = tableOf(shown.stdout);
    assert.deepEqual([record.fate, record.mark, record.payer], ['redeemed', 'used', bob().address]);
    const { code, stderr } = await payments(t, cwd, '--release', transaction);
    assert.deepEqual(
      { code, stderr },
      {
        code: 1,
        stderr: `error: its request ${requestId} may be under way: wait for its end in the log, or use --force where its process has died\n`,
      },
    );
    const released = await payments(t, cwd, '--release', transaction, '--force');
    assert.deepEqual([released.code, fates(released)], [0, ['released']]);
    assert.match(released.stderr, /^info: a payment was released by an operator type=x402 requestId=0x[^\n]*\n$/);

    shop.upstream.json('/p', { price: 7 });
    const second = await startHere(t, cwd);
    assert.equal((await second.redeem(transaction)).status, 200);
    // The socket that the first one left is the second one's.
    await retried(async () => assert.deepEqual(fates(await payments(t, cwd, transaction)), ['answered']));
    await payments(t, cwd, '--release', transaction);
    await second.logged(/a payment was released by an operator .*fate=answered/);

    shop.upstream.on('/p', () => undefined);
    const before = shop.upstream.requests.length;
    const leave = await second.leaving(transaction);
    await retried(() => assert.equal(shop.upstream.requests.length, before + 1));
    await leave();
    await retried(async () => assert.deepEqual(fates(await payments(t, cwd, transaction)), ['left']));
  });

  it('in a file: a settlement that outlived its process is found on the chain, before and after the next start', async (t) => {
    const cwd = await folderOf(t, { type: 'file', path: 'state' });
    t.after(() => shop.facilitator.reset());
    const taken = new Promise<string>((resolve) => {
      shop.facilitator.on('/settle', async (_req, _res, { body }) => {
        resolve((await shop.facilitator.settle(JSON.parse(body))).transaction);
      });
    });
    const { running, buy } = await start(t, cwd);
    const client = x402Client.fromConfig({
      schemes: [{ network: 'eip155:*', client: new ExactClient(alice) }],
      spendControls: false,
    });
    const payload = await client.createPaymentPayload(await askedFor(await buy()));
    const { nonce } = payload.payload.authorization as { nonce: string };
    const lost = buy(paidBy(payload)).catch(() => undefined);
    const transaction = await inTime(taken, 'the settlement');
    await kill(running);
    await lost;

    assert.deepEqual(fates(await payments(t, cwd, nonce)), ['settling']);
    const reconcile = ['--reconcile', '--rpc', `${shop.market.network}=${shop.chain.url}`];
    const dry = await payments(t, cwd, ...reconcile, '--dry-run');
    assert.deepEqual([dry.stderr, fates(dry)], ['', ['settled']]);
    const next = await startHere(t, cwd);
    const real = await payments(t, cwd, ...reconcile);
    const [found] = tableOf(real.stdout);
    assert.deepEqual([real.stderr, found?.transaction, found?.result], ['', transaction, 'the money was taken']);
    await next.logged(/the chain says that a payment was settled .*transaction=0x/);
    assert.equal((await next.buy(paidBy(payload))).status, 402);
    assert.deepEqual(fates(await payments(t, cwd, transaction)), ['settled']);
  });

  it('need the variables of settings.state, where no service listens', async (t) => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference to a variable
    const cwd = await folderOf(t, { type: 'file', path: '${FOLDER}/state' });
    const { code, stdout, stderr } = await payments(t, cwd, `0x${'1'.repeat(64)}`);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^error: settings\.state\.path: the variable FOLDER is not set/m);
    assert.doesNotMatch(stderr, /UPSTREAM_KEY/);
  });

  it('in memory: only the running service knows', async (t) => {
    const { code, stderr } = await payments(t, await folderOf(t), `0x${'1'.repeat(64)}`);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^error: without settings\.state only the running service knows, and none listens at \/\S+\.control or \/run\/signed-data-proxy\/[0-9a-f]{16}\.control\n$/,
    );
  });

  describeServers('in a server', (program) => {
    it('are those of all replicas, of their workers, and of a command beside them', async (t) => {
      const redis = await redisFor(t, program);
      const state = { type: 'redis', url: redis.url };
      const [cwd, other, beside] = await Promise.all([folderOf(t, state, 2), folderOf(t, state), folderOf(t, state)]);
      const [one, two] = await Promise.all([start(t, cwd), startHere(t, other)]);
      await one.running.output(/2 workers are ready/);
      await nextSecond();
      const transaction = await payNative(bob(), PRICE);
      assert.equal((await one.redeem(transaction)).status, 200);
      assert.equal((await two.redeem(transaction)).status, 401);
      for (const folder of [cwd, other, beside])
        await retried(async () => assert.deepEqual(fates(await payments(t, folder, transaction)), ['answered']));
      assert.equal((await payments(t, cwd, '--release', transaction)).stderr, '');
      await one.running.output(/a payment was released by an operator .*worker=\d/);
      assert.equal((await two.redeem(transaction)).status, 200);
      const { stderr } = await payments(t, beside, '--release', transaction);
      assert.match(stderr, /^info: a payment was released by an operator /);
      assert.equal((await one.redeem(transaction)).status, 200);
    });
  });
});
