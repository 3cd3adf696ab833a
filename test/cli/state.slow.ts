/** State lives on after its process, and is checked before it is trusted. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { held as holdFile } from '../state/file-setup.ts';
import { CuttingProxy } from '../state/redis-proxy.ts';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { submitted } from '../support/async.ts';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { inTime, retried } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { folderWith, kill, type Running } from './run.ts';
import { ADDRESS } from './service-config.ts';
import { postTo, startIn, urlOf } from './started.ts';

const PRICE = 1_000_000n;
const USED = 'Payment already used';
const encoding = { type: 'uint256', path: '$.price' };

describe('state beyond a process', async () => {
  const held: ServerResponse[] = [];
  const chain = await chainFor(suite);
  const alice = payer(chain, 2);
  const upstream = await upstreamFor(suite, {
    '/p': faults.json({ price: 7 }),
    '/held': (_req, res) => void held.push(res),
  });

  function launch(t: TestContext, state: Readonly<Record<string, unknown>>, workers = 1): Promise<Running> {
    const config = {
      version: '1.0',
      server: { port: 0, workers },
      settings: { state },
      apis: [
        {
          name: 'a',
          url: upstream.url,
          auth: termsOn(chain, PRICE),
          endpoints: [
            { name: 'paid', path: '/p', encoding },
            { name: 'held', path: '/held', mode: 'async', encoding, auth: { type: 'free' } },
          ],
        },
      ],
    };
    return startIn(t, { 'c.yaml': JSON.stringify(config) });
  }

  async function start(...config: Parameters<typeof launch>) {
    const running = await launch(...config);
    const url = await urlOf(running);
    const [, paid = ''] = await running.output(/a\/paid (0x[0-9a-f]{64})/);
    const [, slow = ''] = await running.output(/a\/held (0x[0-9a-f]{64})/);
    const redeem = async (txHash: string) =>
      postTo(url, paid, await proofHeader(alice, { ids: { paid }, node: ADDRESS }, 'paid', txHash));
    return { running, url, redeem, submit: () => postTo(url, slow) };
  }
  const answered = async (response: Response) =>
    assert.equal(BigInt((await verifyEncoded(response, ADDRESS)).data), 7n);
  /** Blocks have whole seconds: one of this second may be older than the ledger of payments. */
  const nextSecond = () => setTimeout(1000 - (Date.now() % 1000));

  it('in a file outlives a kill: the next process takes no payment again', async (t) => {
    const state = { type: 'file', path: `${await folderWith(t, {})}/state` };
    const first = await start(t, state);
    await nextSecond();
    const [used, unused] = [await payNative(alice, PRICE), await payNative(alice, PRICE)];
    await answered(await first.redeem(used));
    await kill(first.running);
    const second = await start(t, state);
    await assertRefused(await second.redeem(used), 401, USED);
    await answered(await second.redeem(unused));
    await kill(second.running);
    const third = await start(t, state);
    for (const txHash of [used, unused]) await assertRefused(await third.redeem(txHash), 401, USED);
  });

  const prlimit = (pid: number | undefined, bytes: number | 'unlimited') =>
    spawnSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes}:unlimited`]).status;
  const skip = spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit';

  it('in a file on a full disk sells nothing, and all again once there is room', { skip }, async (t) => {
    const path = `${await folderWith(t, {})}/state`;
    const { running, redeem } = await start(t, { type: 'file', path });
    await nextSecond();
    const transaction = await payNative(alice, PRICE);
    assert.equal(prlimit(running.child.pid, 4096), 0);
    await assertRefused(await redeem(transaction), 401, 'Payment verification unavailable');
    await running.output(/the engine of settings\.state is away .*cannot be written: File too large/);
    assert.equal(prlimit(running.child.pid, 'unlimited'), 0);
    await running.output(/the engine of settings\.state is back/);
    await answered(await redeem(transaction));
  });

  it('in a file that hangs holds up no end of its process', async (t) => {
    const path = `${await folderWith(t, {})}/state`;
    const { running } = await start(t, { type: 'file', path });
    const release = await holdFile(path);
    try {
      await running.output(/the engine of settings\.state is away .*no answer within 750 ms/);
      running.child.kill('SIGTERM');
      const { signal, stdout } = await inTime(running.ended, 'the end of the process');
      assert.equal(signal, 'SIGKILL');
      assert.match(stdout, /ERROR the engine of settings\.state did not stop in time engine=file\n\S+ INFO stopped\n$/);
    } finally {
      await release();
    }
  });

  it('in a file that is damaged stops the start', async (t) => {
    const path = `${await folderWith(t, {})}/state`;
    const first = await start(t, { type: 'file', path });
    await kill(first.running);
    const content = await readFile(path);
    await writeFile(path, content.subarray(0, content.length / 2));
    const next = await launch(t, { type: 'file', path });
    assert.equal((await next.ended).code, 1);
    assert.match(
      (await next.ended).stderr,
      new RegExp(`^error: settings\\.state: ${path} is damaged, or no state file`),
    );
  });

  async function assertOfAll(t: TestContext, state: Readonly<Record<string, unknown>>): Promise<void> {
    const { redeem, submit, url, running } = await start(t, state, 2);
    await running.output(/2 workers are ready/);
    await nextSecond();
    const txHash = await payNative(alice, PRICE);
    // A connection each, so that both workers have some.
    const responses = await Promise.all(Array.from({ length: 16 }, () => redeem(txHash)));
    const statuses = responses.map(({ status }) => status).toSorted();
    assert.deepEqual(statuses, [200, ...Array.from({ length: 15 }, () => 401)]);
    const owed = held.length;
    const { pollUrl } = await submitted(await submit());
    await retried(() => assert.equal(held.length, owed + 1));
    held.at(-1)?.setHeader('content-type', 'application/json').end('{"price": 9}');
    const poll = async () => (await fetch(url + pollUrl, { headers: { connection: 'close' } })).text();
    await retried(async () => assert.match(await poll(), /"status":"complete"/));
    const records = await Promise.all(Array.from({ length: 16 }, poll));
    assert.equal(new Set(records).size, 1);
  }

  it('of several workers is in a file that of all of them', async (t) => {
    await assertOfAll(t, { type: 'file', path: `${await folderWith(t, {})}/state` });
  });

  describeServers('of several workers', (program) => {
    it('is that of all of them', async (t) => {
      await assertOfAll(t, { type: 'redis', url: (await redisFor(t, program)).url });
    });
  });

  describeServers('that replicas share', async (program) => {
    const redis = await redisFor(suite, program);

    it('outlives one that is killed, whose async requests end ten minutes after they began', async (t) => {
      const state = { type: 'redis', url: redis.url };
      const [one, other] = await Promise.all([start(t, state), start(t, state)]);
      await nextSecond();
      const used = await payNative(alice, PRICE);
      await answered(await one.redeem(used));
      const owed = held.length;
      const { pollUrl } = await submitted(await one.submit());
      await retried(() => assert.equal(held.length, owed + 1));
      await kill(one.running);
      await assertRefused(await other.redeem(used), 401, USED);
      const poll = () => fetch(other.url + pollUrl);
      assert.equal((await poll()).status, 200);
      const keys = await redis.command('KEYS', 'sdp:async:*');
      assert.ok(Array.isArray(keys) && keys.length === 1);
      const left = Number(await redis.command('PTTL', String(keys[0])));
      assert.ok(left > 500_000 && left <= 600_000, `${left}`);
      await redis.command('PEXPIRE', String(keys[0]), '1');
      await retried(async () => assertRefused(await poll(), 404, 'Request not found'));
    });

    it('has what is owed to a payer before a process ends: what was confirmed without an answer is given back', async (t) => {
      const proxy = await CuttingProxy.start(t, redis.port);
      const state = (url: string) => ({ type: 'redis', url, prefix: 'owed:' });
      const first = await start(t, state(proxy.url));
      await nextSecond();
      const paid = await payNative(alice, PRICE);
      proxy.cutAt('reply', 'redeemed', true);
      await assertRefused(await first.redeem(paid), 401, 'Payment verification unavailable');
      first.running.child.kill('SIGTERM');
      await first.running.output(/stopping signal=SIGTERM/);
      await setTimeout(2000);
      const second = await start(t, state(redis.url));
      await assertRefused(await second.redeem(paid), 401, USED);
      proxy.isAway = false;
      const { code, stdout } = await first.running.ended;
      assert.equal(code, 0);
      assert.doesNotMatch(stdout, /paid for nothing/);
      await answered(await second.redeem(paid));
      await assertRefused(await second.redeem(paid), 401, USED);
    });

    it('outlives a kill of the server at the same time', async (t) => {
      const state = { type: 'redis', url: redis.url, prefix: 'both:' };
      const first = await start(t, state);
      await nextSecond();
      const used = await payNative(alice, PRICE);
      await answered(await first.redeem(used));
      await Promise.all([kill(first.running), redis.kill()]);
      await redis.run();
      const second = await start(t, state);
      await assertRefused(await second.redeem(used), 401, USED);
    });
  });
});
