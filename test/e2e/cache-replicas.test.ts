/** Cache-Status tells which of several replicas had the answer. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { describeServers, eventually, RedisServer } from '../state/redis-server.ts';
import { oneApi } from '../support/answers.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { startUpstream } from '../support/upstream.ts';

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

describeServers('Cache-Status of replicas', (program) => {
  it('says how long the answer still lives, also of one that another replica has made', async (t) => {
    const [redis, upstream] = await Promise.all([RedisServer.start(program), startUpstream()]);
    const services: RunningService[] = [];
    t.after(async () => {
      await Promise.all([...services.map((service) => service.stop()), upstream.close()]);
      await redis.stop();
    });
    upstream.json('/e', { price: 7 });
    const clocks = stoppedClocks(t);
    const encoding = { type: 'uint256', path: '$.price' };
    const settings = { state: { type: 'redis', url: redis.url } };
    const endpoints = { e: { encoding, cache: { maxAge: MAX_AGE } }, forever: { encoding, cache: { maxAge: 1e300 } } };
    upstream.json('/forever', { price: 8 });
    const config = oneApi(upstream.url, endpoints, { settings });
    for (let count = 0; count < 2; count++) services.push(await startTestService(config));
    const [maker, other] = services;
    const statusOf = async (service: RunningService | undefined) =>
      (await service?.post('api/e'))?.headers.get('cache-status');

    assert.equal(await statusOf(maker), 'signed-data-proxy; fwd=miss');
    await eventually(async () => assert.match(String(await redis.command('KEYS', '*cache*')), /cache/));
    const hit = (ttl: number) => `signed-data-proxy; hit; ttl=${ttl}`;
    assert.deepEqual(
      [await statusOf(other), await statusOf(other), await statusOf(maker)],
      [hit(26), hit(26), hit(26)],
    );
    clocks.pass(500);
    assert.deepEqual([await statusOf(other), await statusOf(maker)], [hit(25), hit(25)]);
    // The other one asks the engine again.
    clocks.pass(600);
    assert.deepEqual(
      [await statusOf(other), await statusOf(other), await statusOf(maker)],
      [hit(24), hit(24), hit(24)],
    );
    assert.equal(upstream.requests.length, 1);
    assert.equal((await maker?.post('api/forever'))?.status, 200);
    await eventually(async () => assert.match(String(await (await other?.post('api/forever'))?.text()), /0008"/));
    assert.equal(upstream.requests.length, 2);
  });
});
