/** Each worker sends its own spans, and a stop loses none. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startCollector } from '../support/collector.ts';
import { stopAll } from '../support/lifetime.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, launchCli } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';
import { postTo } from './started.ts';

it('each worker sends its own spans, and a stop loses none', async (t) => {
  const collector = await startCollector();
  const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }) });
  t.after(() => stopAll(collector));
  const cwd = await folderWith(t, { 'c.yaml': configText(upstream.url) });
  // So long that nothing is sent before the end.
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '600000' };
  const { stop, output } = launchCli(t, ['start', '-c', 'c.yaml', '--workers', '2'], {
    cwd,
    env: { SERVICE_PRIVATE_KEY: KEY, ...env },
  });
  await output(/2 workers are ready/);
  const [, url] = await output(/listening on (http:\/\/[^\s"]+)/);
  const id = endpointId(specifications(upstream.url).eth);
  const requests = 20;
  for (let index = 0; index < requests; index++) {
    // Each one on a connection of its own, which the workers take in turn.
    assert.equal((await postTo(url, id, { Connection: 'close' })).status, 200);
  }
  assert.equal((await stop()).code, 0);
  const servers = collector.spans.filter(({ kind }) => kind === 'server');
  assert.equal(new Set(servers.map(({ traceId }) => traceId)).size, requests);
  assert.equal(new Set(servers.map(({ resource }) => resource['process.pid'])).size, 2);
});
