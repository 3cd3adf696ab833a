/** Traces tell the cause of an incident. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { startCollector } from '../support/collector.ts';
import { foundInLog } from '../support/incidents.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { withVariables } from '../support/variables.ts';
import { eventually } from '../support/wait.ts';

describe('an incident', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 7 }) });

  /** A service with its log as operators have it, in a process with these variables. */
  async function start(t: TestContext, variables: Readonly<Record<string, string>> = {}) {
    withVariables(t, variables);
    const service = await serviceFor(t, oneApi(upstream.url, { eth: {} }), { env: { LOG_FORMAT: 'json' } });
    const ask = (headers = {}) => service.post('api/eth', undefined, headers);
    return { ask, log: service.written };
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
        { requestId, traceId: id, clientRequestId: 'order-7', endpoint: 'api/eth', status: 200 },
      ]);
    }
  });
});
