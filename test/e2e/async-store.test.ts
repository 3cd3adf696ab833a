/** Async mode keeps its records for their time, and refuses what has no room. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { modeAsync } from '../../builtins/mode-async/index.ts';
import { AsyncStore } from '../../builtins/mode-async/store.ts';
import { deferred } from '../../lib/time.ts';
import { Refusal, type SignedResponse } from '../../plugins-sdk/index.ts';
import { silentLog } from '../../plugins-sdk/log.ts';
import type { SharedState } from '../../plugins-sdk/state/area.ts';
import { Debts } from '../../plugins-sdk/state/debts.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import type { States } from '../../plugins-sdk/state/store.ts';
import { testPlugin } from '../../service/testing.ts';
import { finished, type Submitted, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { scrape } from '../support/metrics.ts';
import { pausing } from '../support/own-engine.ts';
import { acts, notes, puppetFile } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { encoding, TEST_ADDRESS } from '../support/service.ts';
import { faults, holding } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { retried } from '../support/wait.ts';

const mode = 'async';

describe('the async store is full', () => {
  it('one address may fill it; the 101st submission in flight is refused before any upstream call, until a result was read', async (t) => {
    const { hold, release } = holding();
    const settings = { maxConcurrentApiCalls: 100 };
    const more = { answers: { '/held': hold }, sources: { spy: puppetFile('spy') }, settings };
    const { upstream, service, post } = await served(t, { held: { encoding, mode } }, more);
    t.after(() => acts.clear());
    notes.clear();
    acts.set('spy onError', ({ stage, status }) => notes.add('error', [stage, status]));
    const submissions: Submitted[] = [];
    for (let i = 0; i < 100; i++) submissions.push(await submitted(await post('held')));
    await upstream.untilRequested('/held', 100);
    const refuse = async () => {
      const response = await post('held');
      assert.equal(response.headers.get('cache-control'), 'no-store');
      await assertRefused(response, 503, 'Service Unavailable');
    };
    await refuse();
    assert.deepEqual(await notes.until('error'), [['present', 503]]);
    // Polling one in flight frees nothing.
    await (await fetch(service.url + submissions[0]?.pollUrl)).text();
    await refuse();
    release();
    await upstream.untilIdle();
    const second = submissions[1] ?? assert.fail();
    assert.equal((await finished(service, second)).status, 'complete');
    // One result was read: it makes room for one, and all others are still there.
    const next = await submitted(await post('held'));
    await upstream.untilRequested('/held', 101);
    await refuse();
    // HEAD shows nothing of a result, which is unread as before.
    for (const { pollUrl } of submissions.slice(2)) await fetch(service.url + pollUrl, { method: 'HEAD' });
    await refuse();
    await assertRefused(await fetch(service.url + second.pollUrl), 404, 'Request not found');
    assert.equal(upstream.requests.length, 101);
    release();
    const left = [...submissions.filter((submission) => submission !== second), next];
    const records = await Promise.all(left.map((submission) => finished(service, submission)));
    for (const { requestId, status, pollUrl, ...signed } of records) await verifyEncoded(signed, TEST_ADDRESS);
    assert.equal(new Set(records.map(({ requestId }) => requestId)).size, 100);
  });
});

const MINUTE = 60_000;

describe('async records whose time is over', () => {
  it('leave the gauge of a service that nobody asks anything', async (t) => {
    const ends: (() => void)[] = [];
    const { setTimeout: later } = globalThis;
    t.mock.method(globalThis, 'setTimeout', (...given: Parameters<typeof later>) => {
      const [work, ms] = given;
      if (ms === MINUTE) ends.push(() => work());
      return later(...given);
    });
    const more = { answers: { '*': faults.json({ price: 1 }) }, settings: { metrics: { port: 0 } } };
    const { service, post } = await served(t, { later: { mode } }, more);
    const first = await submitted(await post('later'));
    for (let turn = 1; turn < 20; turn++) await post('later');
    await retried(async () => {
      assert.deepEqual((await scrape(service)).happened('outcomes_total'), { 'api later async signed': 20 });
    });
    assert.equal((await scrape(service)).value('async_records'), 20);
    // What its client has read makes room.
    await finished(service, first);
    assert.equal((await scrape(service)).value('async_records'), 19);
    for (const end of ends) end();
    assert.equal((await scrape(service)).value('async_records'), 0);
  });

  it('leave the memory, although nobody asks and nothing is measured', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const made: unknown[] = [];
    const states: States = {
      keep: (_, __, make) => {
        const state = make();
        made.push(state);
        return state;
      },
    };
    const harness = await testPlugin(modeAsync, { services: { states } });
    const assertKept = (records: number) => {
      assert.ok(made[0] instanceof AsyncStore);
      assert.equal(made[0].size, records);
    };
    const submit = async (ip: string) => {
      const outcome = await harness.run('present', { ip, variant: 'async', run: () => new Promise(() => undefined) });
      assert.ok('value' in outcome && outcome.value.status === 202);
    };
    for (const ip of ['192.0.2.1', '192.0.2.2']) await submit(ip);
    t.mock.timers.tick(9 * MINUTE);
    await submit('192.0.2.3');
    t.mock.timers.tick(MINUTE - 1);
    assertKept(3);
    t.mock.timers.tick(1);
    assertKept(1);
  });
});

describe('an async answer that comes after its record has ended', () => {
  it('is logged as lost, since it may be paid for', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const lines: string[] = [];
    const log = { ...silentLog, error: (message: string) => void lines.push(message) };
    const { promise, resolve } = deferred<SignedResponse>();
    const harness = await testPlugin(modeAsync, { services: { log } });
    await harness.run('present', { variant: 'async', run: () => promise });
    t.mock.timers.tick(10 * MINUTE);
    resolve({ json: '{}', with: () => ({ json: '{}' }) });
    await new Promise(setImmediate);
    const why = 'the answer of an async request is lost: it came after ten minutes, when its record had ended';
    assert.deepEqual(lines, [why]);
  });
});

describe('async requests that end before the engine has it that they began', () => {
  it('are owed to their clients, so that a stop waits for their record', async () => {
    const held = deferred<void>();
    const debts = new Debts();
    const slow = pausing(new MemoryArea(), (next) => (next?.includes('processing') ? held.promise : undefined));
    const stateEngine: SharedState = {
      ...{ engine: 'slow', area: () => slow },
      ...{ doubts: () => [], available: () => true, sinceFailure: () => Number.POSITIVE_INFINITY },
    };
    const harness = await testPlugin(modeAsync, { services: { stateEngine, debts } });
    await harness.run('present', { variant: 'async', run: () => Promise.reject(new Refusal(502, 'API call failed')) });
    await new Promise(setImmediate);
    assert.equal(debts.size, 1);
    held.resolve();
    await debts.paid();
  });
});
