/** live streams signed values, and ends with its client or the service. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { startTestService, TEST_ADDRESS } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

async function start(t: TestContext, endpoint: object = {}) {
  const upstream = await upstreamFor(t);
  let calls = 0;
  upstream.on('/e', (req, res, recorded) => {
    calls += 1;
    return (calls === 2 ? faults.serverError() : faults.json({ n: calls }))(req, res, recorded);
  });
  const endpoints = { e: { mode: 'live', every: 20, ...endpoint } };
  const plugins = [example('live'), example('counter')];
  const service = await startTestService(oneApi(upstream.url, endpoints, { settings: { plugins } }));
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= service.stop());
  t.after(stop);
  return { upstream, service, stop };
}

/** Events as a browser reads them. */
async function* eventsOf(response: Response) {
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, type = 'message', data = ''] = /^(?:event: (\w+)\n)?data: (.*)$/.exec(block) ?? assert.fail(block);
      yield { type, data: JSON.parse(data) };
    }
  }
}

async function take(response: Response, count: number) {
  const taken = [];
  for await (const event of eventsOf(response)) if (taken.push(event) === count) break;
  return taken;
}

describe('live', () => {
  it('sends a signed value now and then; one that fails is an event, and the stream goes on', async (t) => {
    const { service, upstream } = await start(t);
    const response = await service.post('api/e');
    assert.deepEqual(
      [response.status, response.headers.get('content-type'), response.headers.get('cache-control')],
      [200, 'text/event-stream', 'no-store'],
    );
    const events = await take(response, 4);
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.node ?? data.error, data.rawData ?? data.status]),
      [
        ['message', TEST_ADDRESS, { n: 1 }],
        ['failure', 'API call failed', 502],
        ['message', TEST_ADDRESS, { n: 3 }],
        ['message', TEST_ADDRESS, { n: 4 }],
      ],
    );
    assert.notEqual(events[0]?.data.signature, events[2]?.data.signature);
    const counts = JSON.parse(await (await fetch(`${service.url}/counts`)).text());
    assert.ok(counts['api/e'].signed >= 3);
    assert.equal(counts['api/e'].refused, 1);
    assert.ok(upstream.requests.length >= 4);
  });

  it('ends with its client', async (t) => {
    const { service, upstream } = await start(t);
    await take(await service.post('api/e'), 1);
    // A stream that went on would ask every 20 ms, and this would never end.
    for (let before = -1; before !== upstream.requests.length; ) {
      before = upstream.requests.length;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  });

  it('ends with the service, also while it waits for the next value', async (t) => {
    const { service, stop } = await start(t, { every: '1h' });
    const events = eventsOf(await service.post('api/e'));
    assert.equal((await events.next()).value?.type, 'message');
    const stopped = stop();
    assert.equal((await events.next()).done, true);
    await stopped;
  });

  it('what a client may not ask at all is refused in plain HTTP', async (t) => {
    const { service } = await start(t, { parameters: [{ name: 'q', required: true }] });
    await assertRefused(await service.post('api/e'), 400, 'Missing required parameter(s): q');
  });
});
