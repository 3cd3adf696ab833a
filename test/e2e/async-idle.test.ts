/** Async records go when their time is over, also where nobody asks. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { modeAsync } from '../../builtins/mode-async/index.ts';
import { AsyncStore } from '../../builtins/mode-async/store.ts';
import type { States } from '../../plugins-sdk/state/state.ts';
import { testPlugin } from '../../service/testing.ts';
import { oneApi } from '../support/answers.ts';
import { finished, submitted } from '../support/async.ts';
import { scrape } from '../support/metrics.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const MINUTE = 60_000;

describe('async records whose time is over', () => {
  it('leave the gauge of a service that nobody asks anything', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 1 }) });
    const settings = { metrics: { port: 0 } };
    const service = await serviceFor(t, oneApi(upstream.url, { later: { mode: 'async' } }, { settings }));
    const submissions = [];
    for (let turn = 0; turn < 20; turn++) submissions.push(await submitted(await service.post('api/later')));
    await Promise.all(submissions.map((submission) => finished(service, submission)));
    assert.equal((await scrape(service)).value('async_records'), 20);
    const now = performance.now.bind(performance);
    t.mock.method(performance, 'now', () => now() + MINUTE);
    assert.equal((await scrape(service)).value('async_records'), 0);
  });

  it('leave the memory, although nobody asks and nothing is measured', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const clock = { now: 0 };
    t.mock.method(performance, 'now', () => clock.now);
    const made: unknown[] = [];
    const states: States = {
      keep: (_, __, make) => {
        const state = make();
        made.push(state);
        return state;
      },
    };
    const harness = await testPlugin(modeAsync, { services: { states } });
    const store = {
      get size() {
        return made[0] instanceof AsyncStore ? made[0].size : assert.fail();
      },
    };
    const submit = async (ip: string) => {
      const outcome = await harness.run('present', { ip, variant: 'async', run: () => new Promise(() => undefined) });
      assert.ok('value' in outcome && outcome.value.status === 202);
    };
    for (const ip of ['192.0.2.1', '192.0.2.2']) await submit(ip);
    clock.now += 9 * MINUTE;
    await submit('192.0.2.3');
    clock.now += MINUTE - 1;
    t.mock.timers.tick(10_000);
    assert.equal(store.size, 3);
    clock.now += 1;
    t.mock.timers.tick(9999);
    assert.equal(store.size, 3);
    t.mock.timers.tick(1);
    assert.equal(store.size, 1);
    await harness.stop(10);
    clock.now += 9 * MINUTE;
    t.mock.timers.tick(60_000);
    assert.equal(store.size, 1);
  });
});
