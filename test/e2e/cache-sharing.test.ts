/** Clients that miss the cache together share one call of the upstream. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertRefused, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { scrapeAfter } from '../support/metrics.ts';
import { acts, notes, pluginFile, puppetFile } from '../support/plugin-files.ts';
import { served, visit } from '../support/served.ts';
import { encoding, TEST_ADDRESS } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults, type Handler, holding } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

const noteArrivals = () => {
  notes.clear();
  acts.set('arrivals onHttpRequest', () => notes.add('arrival'));
};
/** Resolves when so many requests have come as far as to look into the cache. */
const settled = (count: number) => notes.until('arrival', count);

describe('clients that miss the cache at the same time share one upstream call', async () => {
  /** Answers the calls that have arrived and wait, in their order. */
  const held: Array<(status: number) => void> = [];

  const hold: Handler = (_, response) =>
    void held.push((status) => response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"price": 7}'));
  const parameters = [{ name: 'q' }];
  const endpoints = {
    kept: { encoding, parameters, cache: { maxAge: 60_000 } },
    brief: { encoding, parameters, cache: { maxAge: 1 } },
  };
  const { upstream, service, post } = await served(suite, endpoints, {
    answers: { '*': hold },
    // Longer than any wait of a test: what ends a call is that its clients have left.
    api: { timeout: 120_000 },
    sources: { arrivals: puppetFile('arrivals', ['onHttpRequest', 'onAfterApiCall']) },
  });

  beforeEach(() => tidy(service, upstream));
  beforeEach(() => {
    held.length = 0;
    noteArrivals();
  });

  const calls = (count: number) => eventually(() => held.length >= count, `${count} calls`);

  it('and get the same answer', async () => {
    const answers = Array.from({ length: 20 }, () => post('kept', { q: 'same' }));
    await calls(1);
    await settled(20);
    held[0]?.(200);
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).headers.get('cache-status')));
    const collapsed = Array<string>(19).fill('signed-data-proxy; fwd=miss; collapsed');
    assert.deepEqual(statuses.toSorted(), ['signed-data-proxy; fwd=miss', ...collapsed]);
    const texts = await Promise.all(answers.map(async (answer) => (await answer).text()));
    assert.equal(new Set(texts).size, 1);
    await verifyEncoded(JSON.parse(texts[0] ?? ''), TEST_ADDRESS);
    assert.equal(upstream.requests.length, 1);
  });

  it('also when the answer is not kept as long as they waited', async () => {
    const answers = Array.from({ length: 5 }, () => post('brief', { q: 'same' }));
    await calls(1);
    await settled(5);
    held[0]?.(200);
    for (const answer of answers) assert.equal((await answer).status, 200);
    assert.equal(upstream.requests.length, 1);
  });

  it('but not with clients that ask something else', async () => {
    const answers = [post('kept', { q: 'one' }), post('kept', { q: 'other' })];
    await calls(2);
    for (const answer of held) answer(200);
    await Promise.all(answers.map(async (answer) => verifyEncoded(await answer, TEST_ADDRESS)));
  });

  it('share its failure, which is not kept', async () => {
    const answers = Array.from({ length: 6 }, () => post('kept', { q: 'failing' }));
    await calls(1);
    await settled(6);
    held[0]?.(500);
    for (const answer of answers) await assertRefused(await answer, 502, 'API call failed');
    assert.equal(upstream.requests.length, 1);
    const next = post('kept', { q: 'failing' });
    await calls(2);
    held[1]?.(200);
    await verifyEncoded(await next, TEST_ADDRESS);
  });

  it('but not a budget: who joined goes on when that of the first one ends', async () => {
    acts.set('arrivals onAfterApiCall', ({ signal }) => {
      acts.delete('arrivals onAfterApiCall');
      return new Promise<void>((resolve) => Object(signal).addEventListener('abort', () => resolve()));
    });
    const answers = Array.from({ length: 3 }, () => post('kept', { q: 'spent' }));
    await calls(1);
    await settled(3);
    held[0]?.(200);
    await calls(2);
    held[1]?.(200);
    const answered = (await Promise.all(answers)).toSorted((one, other) => one.status - other.status);
    for (const answer of answered.splice(0, 2)) await verifyEncoded(answer, TEST_ADDRESS);
    for (const answer of answered) await assertRefused(answer, 403, 'Plugin "arrivals" budget exhausted');
    assert.equal(upstream.requests.length, 2);
  });

  it('which goes on when the client leaves that came first', async () => {
    const leader = visit(service, 'api/kept', { q: 'left' });
    await calls(1);
    const answers = [post('kept', { q: 'left' }), post('kept', { q: 'left' })];
    await settled(3);
    leader.leave();
    await leader.outcome;
    // The service learns late of clients that leave.
    await sleep(1200);
    held[0]?.(200);
    for (const answer of answers) await verifyEncoded(await answer, TEST_ADDRESS);
    assert.equal(upstream.requests.length, 1);
  });

  it('which ends when all have left: who comes then has a call of his own', async () => {
    const clients = [0, 1].map(() => visit(service, 'api/kept', { q: 'all' }));
    await calls(1);
    await settled(2);
    for (const { leave } of clients) leave();
    for (const { outcome } of clients) assert.equal(await outcome, 'left');
    await upstream.untilAborted('/kept');
    const newcomer = post('kept', { q: 'all' });
    await calls(2);
    held[1]?.(200);
    await verifyEncoded(await newcomer, TEST_ADDRESS);
    assert.equal(upstream.requests.length, 2);
  });

  it('and may leave while they wait', async () => {
    const leader = post('kept', { q: 'patient' });
    await calls(1);
    const impatient = visit(service, 'api/kept', { q: 'patient' });
    await settled(2);
    impatient.leave();
    assert.equal(await impatient.outcome, 'left');
    held[0]?.(200);
    await verifyEncoded(await leader, TEST_ADDRESS);
    assert.equal(upstream.requests.length, 1);
  });
});

describe('clients that wait for the call of another', () => {
  const start = async (t: TestContext, answer: Handler, timeout: number) => {
    acts.clear();
    noteArrivals();
    const { service, upstream, post } = await served(
      t,
      { e: { encoding } },
      {
        answers: { '/e': answer },
        sources: { arrivals: puppetFile('arrivals', ['onHttpRequest', 'onBeforeSign']) },
        entries: { arrivals: { timeout: 30_000 } },
        api: { timeout, cache: { maxAge: 60_000 } },
        settings: { metrics: { port: 0 } },
      },
    );
    /** Asks, once all before have come as far as to look into the cache. */
    const after = async <T>(ask: () => T) => {
      const before = notes.of('arrival').length;
      const asked = ask();
      await settled(before + 1);
      return { asked };
    };
    const ask = () => after(() => post('e'));
    const come = () => after(() => visit(service, 'api/e'));
    return { service, upstream, ask, come };
  };

  it('wait for one timeout, whoever else leaves', async (t) => {
    const { upstream, ask, come } = await start(t, faults.hang(), 3000);
    const leaving = [];
    for (let count = 0; count < 5; count++) leaving.push(await come());
    const victim = await ask();
    for (const { asked } of leaving) asked.leave();
    await assertRefused(await victim.asked, 502, 'API call failed');
    assert.equal(upstream.requests.length, 1);
  });

  it('wait for all that is to be done with its answer', async (t) => {
    const TIMEOUT = 1000;
    const { upstream, ask } = await start(t, faults.json({ price: 7 }), TIMEOUT);
    const signing: Array<() => void> = [];
    acts.set('arrivals onBeforeSign', () => new Promise<void>((resolve) => signing.push(resolve)));
    const leader = await ask();
    const letGo = await eventually(() => signing[0], 'the leader');
    const waiting = [await ask(), await ask()];
    await sleep(2.5 * TIMEOUT);
    letGo();
    for (const { asked } of [leader, ...waiting]) await verifyEncoded(await asked, TEST_ADDRESS);
    assert.equal(upstream.requests.length, 1);
  });

  it('count even if they leave', async (t) => {
    const { held, hold, release } = holding();
    const { ask, come, service } = await start(t, hold, 10_000);
    const leader = await ask();
    await eventually(() => held[0], 'the call');
    (await come()).asked.leave();
    release();
    await verifyEncoded(await leader.asked, TEST_ADDRESS);
    const found = await scrapeAfter(service, 2);
    assert.deepEqual(found.happened('cache_lookups_total'), { miss: 1, shared: 1 });
  });
});

/** More than the 50 calls that may run at the same time. */
const CLIENTS = 100;
/** So many come at once. */
const WAVE = 50;

it(`${CLIENTS} clients that want the same of an upstream that hangs cost one call, and all are told how it ended`, async (t) => {
  const { held, hold } = holding();
  const { upstream, at } = await served(
    t,
    { e: {} },
    {
      answers: { '/e': hold },
      sources: { arrivals: puppetFile('arrivals', ['onHttpRequest', 'onError']) },
      api: { timeout: 120_000, cache: { maxAge: 60_000 } },
    },
  );
  noteArrivals();
  acts.set('arrivals onError', ({ stage, status }) => {
    if (stage === 'callApi' && status === 502) notes.add('told');
  });
  const answers: Promise<Response>[] = [];
  while (answers.length < CLIENTS) {
    answers.push(...Array.from({ length: WAVE }, () => postText(at('e'), '{}')));
    await settled(answers.length);
  }
  held[0]?.destroy();
  for (const answer of answers) await assertRefused(await answer, 502, 'API call failed');
  assert.equal(upstream.requests.length, 1);
  await eventually(() => notes.of('told').length === CLIENTS, 'all errors');
});

it('a plugin has one budget in a request, also where requests may share what comes after its first hook', async (t) => {
  const hooks = 'onHttpRequest: () => block(30), onBeforeApiCall: () => block(30)';
  const { refused, upstream } = await served(
    t,
    { e: { encoding, cache: { maxAge: 60_000 } } },
    { sources: { slow: pluginFile('slow', hooks) }, entries: { slow: { timeout: 50 } } },
  );
  await refused(403, 'Plugin "slow" budget exhausted', 'e');
  assert.equal(upstream.requests.length, 0);
});
