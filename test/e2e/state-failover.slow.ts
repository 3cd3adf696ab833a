/** A Cluster and Sentinels keep the state while a primary is killed: nothing is sold twice, and no request hangs. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { clusterFor, keeperOf, PRIMARY, sentinelsFor } from '../state/redis-many.ts';
import { describeServers } from '../state/redis-server.ts';
import { finished, type Submitted, submitted } from '../support/async.ts';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { stopAll, suite } from '../support/lifetime.ts';
import { encoding, oneApi, type RunningService, startTestService } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const PRICE = 1_000_000n;
const MAX = 40;
const USED = 'Payment already used';
const UNAVAILABLE = 'Payment verification unavailable';
const KEY = 'k'.repeat(32);
/** A process that is killed loses nothing by it, and the disk is no bottleneck. */
const SOFT = { appendfsync: 'everysec' };

/** The answer, which must come, whatever it says. */
async function within<T>(answer: Promise<T>): Promise<T> {
  const late = setTimeout(10_000, undefined, { ref: false }).then(() => assert.fail('a request hangs'));
  return Promise.race([answer, late]);
}

describeServers('two replicas whose state is in several servers', async (program) => {
  const [chain, upstream] = await Promise.all([chainFor(suite), upstreamFor(suite)]);
  const alice = payer(chain, 2);
  upstream.json('/p', { price: 7 });

  async function replicas(state: object): Promise<readonly [RunningService, RunningService]> {
    const api = (name: string, auth: object, endpoints: Parameters<typeof oneApi>[1]) =>
      oneApi(upstream.url, endpoints, { api: { name, auth } }).apis;
    const keys = [{ name: 'ada', key: KEY, rateLimit: { window: 86_400_000, max: MAX } }];
    const config = {
      server: { rateLimit: { max: 1_000_000, x402: { max: 1_000_000 } } },
      settings: { state: { type: 'redis', ...state } },
      apis: [
        ...api('paid', termsOn(chain, PRICE), { sync: { path: '/p?paid', encoding } }),
        ...api('limited', { type: 'apiKey', keys }, { sync: { path: '/p?limited', encoding } }),
        ...api(
          'free',
          { type: 'free' },
          {
            sync: { path: '/p', encoding },
            async: { path: '/p?async', mode: 'async', encoding },
          },
        ),
      ],
    };
    const both = [await startTestService(config), await startTestService(config)] as const;
    // Blocks have whole seconds: one of this second may be older than the ledger of payments.
    await setTimeout(1000 - (Date.now() % 1000));
    return both;
  }

  const redeem = async (service: RunningService, txHash: string) =>
    within(service.post('paid/sync', {}, await proofHeader(alice, service, 'paid/sync', txHash)));
  const payments = async (count: number) => {
    const hashes: string[] = [];
    while (hashes.length < count) hashes.push(await payNative(alice, PRICE));
    return hashes;
  };
  /** The key under which a payment is remembered. */
  const markOf = (txHash: string) => `sdp:x402:v:${txHash}:${alice.address.toLowerCase()}`;
  /** Whether the payment has bought an answer; else it was refused as it may be meanwhile. */
  async function isSold(response: Response): Promise<boolean> {
    if (response.status === 200) return true;
    const { error }: { error?: string } = JSON.parse(await response.text());
    assert.ok(response.status === 401 && (error === USED || error === UNAVAILABLE), `${response.status} ${error}`);
    return false;
  }
  /** Presents a payment at both replicas at once until it has bought something; how often it has. */
  async function sales(both: readonly RunningService[], txHash: string): Promise<number> {
    return retried(async () => {
      const sold = await Promise.all(both.map(async (service) => isSold(await redeem(service, txHash))));
      assert.ok(sold.includes(true), 'not sold');
      return sold.filter(Boolean).length;
    });
  }
  const ready = async ({ url }: RunningService) => (await within(fetch(`${url}/ready`))).json();

  /** What clients ask for all the time, until they are told to end. */
  function clients(both: readonly RunningService[]) {
    let isOver = false;
    const limited: number[][] = [[], []];
    const begun: Submitted[] = [];
    const each = async (ask: (service: RunningService, index: number) => Promise<unknown>) => {
      while (!isOver) {
        for (const [index, service] of both.entries()) await ask(service, index);
        await setTimeout(20);
      }
    };
    const asking = [
      each(async (service) => assert.equal((await within(service.post('free/sync'))).status, 200)),
      each(async (service, index) => {
        const { status } = await within(service.post('limited/sync', {}, { 'X-Api-Key': KEY }));
        limited[index]?.push(status);
      }),
      each(async (service) => {
        const response = await within(service.post('free/async'));
        if (response.status === 503) await assertRefused(response, 503, 'Service Unavailable');
        else begun.push(await submitted(response));
      }),
    ];
    const end = async () => {
      isOver = true;
      await Promise.all(asking);
    };
    return { end, begun, limited };
  }

  /** Does the work with replicas that end before their servers do: a stop waits for what payers are owed. */
  async function withReplicas(state: object, work: (both: readonly RunningService[]) => Promise<void>) {
    const both = await replicas(state);
    try {
      await work(both);
    } finally {
      await stopAll(...both);
    }
  }

  async function survive(both: readonly RunningService[], kill: () => Promise<void>) {
    const used = await payments(6);
    for (const txHash of used) assert.equal(await sales(both, txHash), 1);
    const { end, begun, limited } = clients(both);
    const unused = await payments(12);
    await retried(() => assert.ok(begun.length > 10, 'no load'));
    await kill();
    const sold = await Promise.all(unused.map((txHash) => sales(both, txHash)));
    assert.deepEqual(sold, Array(12).fill(1));
    await retried(async () => {
      for (const service of both) assert.deepEqual(await ready(service), { status: 'ready' });
    });
    const last = () => limited.map((statuses) => statuses.at(-1));
    await retried(() => assert.deepEqual(last(), [429, 429]));
    await end();
    const allowed = limited.flat().filter((status) => status === 200).length;
    assert.ok(allowed >= MAX && allowed <= 2 * MAX, `${allowed}`);
    assert.deepEqual(new Set(limited.flat()), new Set([200, 429]));
    for (const service of both)
      for (const txHash of [...used, ...unused]) await assertRefused(await redeem(service, txHash), 401, USED);
    for (const [index, request] of begun.entries()) {
      const { status } = await retried(() => finished(both[(index + 1) % 2] as RunningService, request));
      assert.equal(status, 'complete');
    }
    assert.equal(await sales(both, await payNative(alice, PRICE)), 1);
  }

  it('go on when the primary that most payments need is killed in a Cluster', async (t) => {
    const servers = await clusterFor(t, program, SOFT);
    const urls = servers.slice(0, 3).map(({ url }) => url);
    await withReplicas({ urls }, (both) =>
      survive(both, async () => (await keeperOf(servers, 'sdp:x402:v:ledger')).kill()),
    );
  });

  it('go on when the primary is killed that Sentinels watch', async (t) => {
    const { servers, ports } = await sentinelsFor(t, program, { ...SOFT, 'min-replicas-to-write': '1' });
    const urls = ports.map((port) => `redis://127.0.0.1:${port}`);
    const sentinel = { name: PRIMARY, urls };
    await withReplicas({ sentinel }, (both) => survive(both, async () => void (await servers[0]?.kill())));
  });

  it('refuse only what needs the keys of a primary that has no replica', async (t) => {
    const servers = await clusterFor(t, program, { ...SOFT, 'cluster-require-full-coverage': 'no' }, 0);
    const ledger = await keeperOf(servers, 'sdp:x402:v:ledger');
    const victim = servers.find((server) => server !== ledger);
    assert.ok(victim);
    await withReplicas({ urls: [ledger.url] }, async (both) => {
      const hashes = await payments(12);
      const keepers = await Promise.all(hashes.map((hash) => keeperOf(servers, markOf(hash))));
      const needing = hashes.filter((_, index) => keepers[index] === victim);
      const others = hashes.filter((_, index) => keepers[index] !== victim);
      await victim.kill();
      // What is listed for operators is spread over all servers, so that any try may fail.
      for (const txHash of others) assert.equal(await sales(both, txHash), 1);
      for (const txHash of needing)
        for (const service of both) await assertRefused(await redeem(service, txHash), 401, UNAVAILABLE);
      for (const service of both) {
        assert.equal((await service.post('free/sync')).status, 200);
        assert.deepEqual(await ready(service), { status: 'ready' });
      }
      await victim.run();
      for (const txHash of needing) assert.equal(await sales(both, txHash), 1);
      for (const { logs } of both) {
        const said = logs.flatMap(({ message }) => (/keys of settings\.state/.test(message) ? [message] : []));
        assert.deepEqual(said, ['some keys of settings.state are away', 'all keys of settings.state are back']);
      }
    });
  });
});
