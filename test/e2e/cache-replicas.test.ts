/** Replicas that share a cache tell how long an answer lives, and which signature is no new one. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { type AuditLine, auditLines } from '../support/audit.ts';
import { stopAll } from '../support/lifetime.ts';
import { encoding, oneApi, type RunningService, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';

const MAX_AGE = 26_000;

/** Both clocks of this process stand still, until they are moved. */
function stoppedClocks(t: TestContext) {
  const [date, monotonic] = [Date.now(), performance.now()];
  let passed = 0;
  t.mock.method(Date, 'now', () => date + passed);
  t.mock.method(performance, 'now', () => monotonic + passed);
  return {
    pass: (milliseconds: number) => {
      passed += milliseconds;
    },
  };
}

describeServers('Replicas that share a cache', (program) => {
  /** Starts a replica of the test. */
  const replicas = async (t: TestContext, endpoints: Parameters<typeof oneApi>[1]) => {
    const redis = await redisFor(t, program);
    const upstream = await upstreamFor(t, { '/e': faults.json({ price: 7 }), '/forever': faults.json({ price: 8 }) });
    const start = (more: object = {}) =>
      startTestService(
        oneApi(upstream.url, endpoints, { settings: { state: { type: 'redis', url: redis.url }, ...more } }),
      );
    const untilKept = () => retried(async () => assert.match(String(await redis.command('KEYS', '*cache*')), /cache/));
    return { upstream, start, untilKept };
  };

  it('say in Cache-Status how long the answer still lives, also of one that another replica has made', async (t) => {
    const clocks = stoppedClocks(t);
    const { upstream, start, untilKept } = await replicas(t, {
      e: { encoding, cache: { maxAge: MAX_AGE } },
      forever: { encoding, cache: { maxAge: 1e300 } },
    });
    const [maker, other] = [await start(), await start()];
    t.after(() => stopAll(maker, other));
    const statusOf = async (service: RunningService) => (await service.post('api/e')).headers.get('cache-status');

    assert.equal(await statusOf(maker), 'signed-data-proxy; fwd=miss');
    await untilKept();
    const assertHits = async (ttl: number, ...services: RunningService[]) => {
      for (const service of services) assert.equal(await statusOf(service), `signed-data-proxy; hit; ttl=${ttl}`);
    };
    await assertHits(26, other, other, maker);
    clocks.pass(500);
    await assertHits(25, other, maker);
    // The other one asks the engine again.
    clocks.pass(600);
    await assertHits(24, other, other, maker);
    assert.equal(upstream.requests.length, 1);
    assert.equal((await maker.post('api/forever')).status, 200);
    await retried(async () => assert.match(await (await other.post('api/forever')).text(), /0008"/));
    assert.equal(upstream.requests.length, 2);
  });

  it('have a signature that another replica made as no new one in their audit records', async (t) => {
    const folder = await folderWith(t);
    const { upstream, start, untilKept } = await replicas(t, {
      e: { encoding, receipt: true, cache: { maxAge: 600_000 } },
    });
    const paths = ['maker', 'other'].map((name) => join(folder, name));
    const services = [];
    for (const path of paths) services.push(await start({ audit: { path } }));
    for (const service of services) {
      assert.equal((await service.post('api/e')).status, 200);
      await untilKept();
    }
    await stopAll(...services);
    assert.equal(upstream.requests.length, 1);
    const [[made], [given]] = (await Promise.all(paths.map(auditLines))) as [AuditLine[], AuditLine[]];
    assert.ok(made?.requestHash !== undefined && made.requestId !== given?.requestId);
    assert.deepEqual(given, { ...made, requestId: given?.requestId, again: true });
  });
});
