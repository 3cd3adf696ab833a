/** The status of a service tells the cause of an incident. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { runCli } from '../cli/run.ts';
import { describeServers, freePort, redisFor } from '../state/redis-server.ts';
import { queryOf } from '../support/incidents.ts';
import { reload } from '../support/reload.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const KEY = 'k'.repeat(32);

/** What the command `status` of a row of docs/troubleshooting.md finds, without a log and without Prometheus. */
describeServers('an incident, by the status of the service', (program) => {
  async function start(t: TestContext) {
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 1 }), '/broken': faults.empty(404) });
    const redis = await redisFor(t, program);
    const settings = { metrics: { port: await freePort() }, state: { type: 'redis', url: redis.url } };
    const api = { auth: [{ type: 'apiKey', keys: [{ name: 'ada', key: KEY }] }, { type: 'free' }] };
    const config = oneApi(upstream.url, { plain: {}, broken: {} }, { api, settings });
    const service = await serviceFor(t, config);
    const found = async (symptom: string) => {
      const [command = '', filter = ''] = (await queryOf(symptom)).split(/ \| jq -c /);
      const [name, ...words] = command.split(' ');
      assert.equal(name, 'signed-data-proxy');
      const { stdout } = await runCli(t, words, { cwd: service.folder });
      const jq = spawnSync('jq', ['-c', filter.slice(1, -1)], { input: stdout, encoding: 'utf8' });
      assert.deepEqual([jq.status, jq.stderr], [0, '']);
      return jq.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    };
    return { redis, config, service, found };
  }

  it('a reload that failed', async (t) => {
    const { config, service, found } = await start(t);
    const [symptom, file] = ['A change of the config has no effect', join(service.folder, 'config.yaml')];
    assert.deepEqual(await found(symptom), [{ config: file, generation: 1, lastReload: 'succeeded' }]);
    assert.equal((await reload(service, config)).done, true);
    assert.equal((await reload(service, { ...config, strange: 1 })).done, false);
    assert.deepEqual(await found(symptom), [{ config: file, generation: 2, lastReload: 'failed' }]);
  });

  it('an upstream that fails, and a client that asks too much', async (t) => {
    const { service, found } = await start(t);
    for (const [name, status] of [
      ['plain', 200],
      ['broken', 502],
      ['broken', 502],
    ] as const)
      assert.equal((await service.post(`api/${name}`, undefined, { 'X-Api-Key': KEY })).status, status);
    assert.equal((await service.post('api/plain')).status, 200);
    assert.deepEqual(await found('Requests fail, without Prometheus'), [
      { reason: 'status_4xx', endpoint: 'api/broken', status: 502, count: 2 },
    ]);
    assert.deepEqual(await found('Load has risen: which client?'), [{ name: 'ada', requests: 3 }]);
  });

  it('an engine that is away', async (t) => {
    const { redis, service, found } = await start(t);
    const symptom = '`away` in `/ready`, payments or async requests are 503';
    assert.deepEqual(await found(symptom), []);
    await redis.stop();
    await eventually(() => service.logs.some(({ message }) => message === 'the engine of settings.state is away'));
    assert.deepEqual(await found(symptom), [{ name: 'redis', state: 'away' }]);
  });
});
