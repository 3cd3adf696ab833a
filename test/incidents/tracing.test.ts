/** Traces tell the cause of an incident. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, launchCli } from '../cli/run.ts';
import { configText, endpointId, KEY, specifications } from '../cli/service-config.ts';
import { urlOf } from '../cli/started.ts';
import { startCollector } from '../support/collector.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { foundInLog } from '../support/incidents.ts';
import { suite } from '../support/lifetime.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

describe('an incident', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 7 }) });

  /** A service with its log as operators have it. */
  async function start(t: TestContext, env: Readonly<Record<string, string>> = {}) {
    const cwd = await folderWith(t, { 'c.yaml': configText(upstream.url) });
    const more = { SERVICE_PRIVATE_KEY: KEY, LOG_FORMAT: 'json', ...env };
    const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env: more });
    const endpoint = `${await urlOf(running)}/endpoints/${endpointId(specifications(upstream.url).eth)}`;
    const ask = (headers: Record<string, string> = {}) =>
      fetch(endpoint, { method: 'POST', headers: { ...JSON_HEADERS, ...headers }, body: '{}' });
    return { ask, log: running.written };
  }

  it('of traces that do not arrive', async (t) => {
    const collector = await startCollector();
    t.after(() => collector.close());
    collector.answer(401);
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20' };
    const { ask, log } = await start(t, env);
    for (const asked of [1, 2]) {
      assert.equal((await ask()).status, 200);
      await collector.until(() => collector.requests.length >= asked);
    }
    await eventually(() => log().includes('spans are not exported'));
    const found = (await foundInLog('Traces do not arrive at the collector', log())) as Record<string, unknown>[];
    assert.deepEqual(
      found.map(({ msg, error }) => ({ msg, error })),
      [{ msg: 'spans are not exported', error: '401 Unauthorized' }],
    );
  });

  it('that a client or an upstream reports by an id of its own', async (t) => {
    const { ask, log } = await start(t);
    const id = '4bf92f3577b34da6a3ce929d0e0e4736';
    const mine = await ask({ traceparent: `00-${id}-00f067aa0ba902b7-01`, 'X-Request-Id': 'order-7' });
    await ask({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'X-Request-Id': 'order-8' });
    const requestId = mine.headers.get('x-request-id');
    await eventually(() => log().split('"msg":"request"').length > 2);
    const symptom = 'A client or an upstream gives a trace ID, or its own request ID';
    for (const given of [id, 'order-7']) {
      assert.deepEqual(await foundInLog(symptom, log(), { ID: given }), [
        { requestId, traceId: id, clientRequestId: 'order-7', endpoint: 'prices/eth', status: 200 },
      ]);
    }
  });
});
