/** Async mode answers 202, keeps one record a request for its time, and refuses what has no room. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { modeAsync } from '../../builtins/mode-async/index.ts';
import { AsyncStore } from '../../builtins/mode-async/store.ts';
import { deferred } from '../../lib/time.ts';
import { Refusal } from '../../plugins-sdk/index.ts';
import type { SharedState } from '../../plugins-sdk/state/area.ts';
import { Debts } from '../../plugins-sdk/state/debts.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import type { States } from '../../plugins-sdk/state/store.ts';
import { testPlugin } from '../../service/testing.ts';
import { finished, type Submitted, submitted } from '../support/async.ts';
import { assertRefused, assertRouteHeaders, REQUEST_ID } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { pausing } from '../support/own-engine.ts';
import { acts, HOOKS, notes, puppetFile } from '../support/plugin-files.ts';
import { served, visit } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults, holding } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';
import { retried } from '../support/wait.ts';

const mode = 'async';
const encoding = { type: 'int256', path: '$.price' };

const endpoints = {
  encoded: { mode, encoding },
  raw: { mode },
  needs: { mode, path: '/encoded?n', parameters: [{ name: 'q', required: true }] },
  wild: { mode, path: '/encoded?w', encoding: { type: '*', path: '$.price' } },
  keyed: { mode, path: '/encoded?k', auth: { type: 'apiKey', keys: ['k'] } },
  down: { mode },
  none: { mode, path: '/encoded?m', encoding: { ...encoding, path: '$.none' } },
  empty: { mode, encoding },
  held: { mode, encoding },
};

describe('async mode', async () => {
  const { hold, release } = holding();
  const { upstream, service, post, refused } = await served(suite, endpoints, {
    answers: {
      '/encoded': faults.json({ price: -7 }),
      '/raw': faults.json({ b: 1, a: ['x'] }),
      '/down': faults.serverError(),
      '/empty': faults.empty(204),
      '/held': hold,
    },
    sources: { spy: puppetFile('spy') },
  });

  const poll = ({ pollUrl }: Pick<Submitted, 'pollUrl'>) => fetch(service.url + pollUrl);

  it('202 with requestId, status and pollUrl, kept by no cache', async () => {
    const response = await post('encoded');
    assertRouteHeaders(response);
    assert.equal(response.headers.get('content-type'), 'application/json');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    const body = await submitted(response);
    const { requestId } = body;
    assert.match(requestId, REQUEST_ID);
    assert.deepEqual(body, { requestId, status: 'pending', pollUrl: `/requests/${requestId}` });
    await finished(service, body);
  });

  it('a record in flight, then the signed fields of an encoded answer', async () => {
    const submission = await submitted(await post('held'));
    await upstream.untilRequested('/held');
    const response = await poll(submission);
    assert.deepEqual([response.status, await response.json()], [200, { ...submission, status: 'processing' }]);
    assert.equal(response.headers.get('cache-control'), 'no-store');
    assertRouteHeaders(response);
    release();
    const { requestId, status, pollUrl, ...signed } = await finished(service, submission);
    assert.deepEqual({ requestId, status, pollUrl }, { ...submission, status: 'complete' });
    assert.deepEqual(Object.keys(signed).sort(), ['data', 'endpointId', 'node', 'signature', 'timestamp']);
    assert.equal(signed.endpointId, service.ids['api/held']);
    const { data } = await verifyEncoded(signed, TEST_ADDRESS);
    assert.deepEqual([...AbiCoder.defaultAbiCoder().decode(['int256'], data)], [5n]);
  });

  it('the same complete record at every poll', async () => {
    const submission = await submitted(await post('raw'));
    const { requestId, status, pollUrl, ...signed } = await finished(service, submission);
    assert.deepEqual({ requestId, status, pollUrl }, { ...submission, status: 'complete' });
    assert.deepEqual((await verifyRaw(signed, TEST_ADDRESS)).rawData, { a: ['x'], b: 1 });
    const again = await poll(submission);
    assert.equal(again.headers.get('cache-control'), 'no-store');
    assert.deepEqual(await again.json(), { requestId, status, pollUrl, ...signed });
  });

  it('a failed record has the text that sync mode would have answered', async () => {
    const errors = {
      down: 'API call failed',
      none: 'No value found at path: $.none',
      empty: 'API returned no data to encode',
    };
    for (const [name, error] of Object.entries(errors)) {
      const submission = await submitted(await post(name));
      assert.deepEqual(await finished(service, submission), { ...submission, status: 'failed', error });
    }
  });

  it('what is refused before the cache is refused at once (pipeline rows 1 to 4)', async () => {
    const calls = upstream.requests.length;
    await refused(400, 'Missing required parameter(s): q', 'needs');
    await refused(400, 'Endpoint requires `_type` request parameter', 'wild');
    await refused(401, 'Missing X-Api-Key header', 'keyed');
    acts.set('spy onHttpRequest', () => ({ reject: true, message: 'no' }));
    await refused(403, 'no', 'encoded');
    acts.clear();
    assert.equal(upstream.requests.length, calls);
  });

  it('404 `Request not found` for an unknown id of any shape', async () => {
    for (const id of [`0x${'0'.repeat(64)}`, 'x', '__proto__', '%00', `0x${'a'.repeat(5000)}`]) {
      const response = await fetch(`${service.url}/requests/${id}`);
      assert.equal(response.headers.get('cache-control'), 'no-store');
      await assertRefused(response, 404, 'Request not found');
    }
    const wrong = await fetch(`${service.url}/requests/x`, { method: 'POST' });
    await assertRefused(wrong, 405, 'Method Not Allowed');
  });

  it('the requestId is a secret of its own: in no log, no plugin context and no X-Request-Id', async () => {
    notes.clear();
    for (const hook of HOOKS) {
      acts.set(`spy ${hook}`, (context) =>
        notes.add('context', JSON.stringify({ ...context, message: String(context.error) })),
      );
    }
    const ids: string[] = [];
    const headers: (string | null)[] = [];
    for (const name of ['encoded', 'raw', 'down']) {
      const response = await post(name);
      headers.push(response.headers.get('x-request-id'));
      const submission = await submitted(response);
      ids.push(submission.requestId);
      await finished(service, submission);
      const last = await poll(submission);
      await last.text();
      headers.push(last.headers.get('x-request-id'));
    }
    await notes.until('context', 3 + 3 + 2 + 1 + 2 + 1);
    acts.clear();
    const lines = JSON.stringify(service.logs);
    for (const id of ids) {
      assert.ok(!lines.includes(id) && !lines.includes(id.slice(2)), 'no log line');
      for (const context of notes.of('context')) assert.ok(!String(context).includes(id), 'no context');
      assert.ok(!headers.includes(id), 'no header');
    }
    assert.equal(new Set([...ids, ...headers]).size, ids.length + headers.length);
    assert.ok(lines.includes('GET /requests/:requestId 200'), 'polls are logged by their route');
  });

  it('a client that disconnects does not end the work', async () => {
    const before = upstream.requests.filter(({ path }) => path === '/held').length;
    notes.clear();
    acts.set('spy onResponseSent', () => notes.add('sent'));
    let leave = () => {};
    // The submission is on its way to the background: the client leaves without its 202.
    acts.set('spy onBeforeApiCall', () => leave());
    const client = visit(service, 'api/held');
    leave = client.leave;
    await client.outcome;
    await upstream.untilRequested('/held', before + 1);
    acts.delete('spy onBeforeApiCall');
    // A request of another client later, the upstream call is still there.
    await (await fetch(`${service.url}/health`)).text();
    assert.equal(upstream.open, 1);
    release();
    await notes.until('sent');
    acts.clear();
  });

  it('cached neither read nor written', async (t) => {
    const endpoints = { a: { mode }, s: { mode: 'stream' } };
    const answers = { '*': faults.json(1) };
    const cached = await served(t, endpoints, { answers, api: { cache: { maxAge: 60_000 } } });
    for (let i = 0; i < 2; i++) {
      await finished(cached.service, await submitted(await cached.post('a')));
      await (await cached.post('s')).text();
    }
    assert.equal(cached.upstream.requests.length, 4);
  });
});

describe('the async store is full', () => {
  it('one address may fill it; the 101st submission in flight is refused before any upstream call, until a result was read', async (t) => {
    const { hold, release } = holding();
    const { upstream, service, post } = await served(
      t,
      { held: { encoding, mode } },
      {
        answers: { '/held': hold },
        sources: { spy: puppetFile('spy') },
        settings: { maxConcurrentApiCalls: 100 },
      },
    );
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
