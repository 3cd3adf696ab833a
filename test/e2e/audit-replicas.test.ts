/** The audit records of replicas take no signature of another one for a new one. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { describeServers, eventually, RedisServer } from '../state/redis-server.ts';
import { oneApi } from '../support/answers.ts';
import { auditLines } from '../support/audit.ts';
import { stopAll } from '../support/lifetime.ts';
import { startTestService } from '../support/service.ts';
import { faults, startUpstream } from '../support/upstream.ts';

describeServers('The audit records of replicas', (program) => {
  it('have a signature that another replica made as no new one', async (t) => {
    const [redis, upstream] = await Promise.all([
      RedisServer.start(program),
      startUpstream({ '*': faults.json({ price: 7 }) }),
    ]);
    const folder = await folderWith(t);
    const encoding = { type: 'uint256', path: '$.price' };
    const start = (path: string) => {
      const settings = { state: { type: 'redis', url: redis.url }, audit: { path: join(folder, path) } };
      return startTestService(
        oneApi(upstream.url, { e: { encoding, receipt: true, cache: { maxAge: 600_000 } } }, { settings }),
      );
    };
    const services = [await start('maker'), await start('other')];
    t.after(() => stopAll(upstream, redis));
    const [maker, other] = services;
    assert.equal((await maker?.post('api/e'))?.status, 200);
    await eventually(async () => assert.match(String(await redis.command('KEYS', '*cache*')), /cache/));
    assert.equal((await other?.post('api/e'))?.status, 200);
    await Promise.all(services.map((service) => service.stop()));
    assert.equal(upstream.requests.length, 1);
    const [[made], [given]] = [await auditLines(join(folder, 'maker')), await auditLines(join(folder, 'other'))];
    assert.ok(made?.requestHash !== undefined && made.requestId !== given?.requestId);
    assert.deepEqual(given, { ...made, requestId: given?.requestId, again: true });
  });
});
