/** An answer that has ended is given out while a new one is made, or where there is none (RFC 5861). */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const MAX_AGE = 100;
const STALE = /^signed-data-proxy; hit; ttl=-\d+; detail=stale-while-revalidate$/;

const ended = () => setTimeout(MAX_AGE + 20);

/** A service of the suite whose answers end soon, and what asks for them. */
async function keeping(endpoints: Parameters<typeof served>[1], more: object) {
  const api = await served(suite, endpoints, { ...more, settings: { metrics: { port: 0 } } });
  const answer = async (parameters: object = {}, name = 'e') => {
    const response = await api.post(name, parameters);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return { text, cache: response.headers.get('cache-status') ?? '' };
  };
  return { ...api, answer };
}

describe('cache.staleIfError', async () => {
  const endpoints = {
    e: { cache: { maxAge: MAX_AGE, staleIfError: '10m' }, receipt: true, parameters: [{ name: 'q' }] },
    brief: { cache: { maxAge: MAX_AGE, staleIfError: MAX_AGE } },
    none: { cache: { maxAge: MAX_AGE } },
  };
  const { upstream, service, refused, answer } = await keeping(endpoints, { api: { timeout: 400 } });

  beforeEach(() => upstream.json('*', 7));

  it('gives it out as it was signed, and says how long ago it ended', async () => {
    const good = await answer({ q: 'a' });
    for (const fault of [faults.serverError(), faults.empty(429), faults.html(), faults.hang(), faults.reset()]) {
      upstream.on('*', fault);
      await ended();
      const { text, cache } = await answer({ q: 'a' });
      assert.equal(text, good.text);
      assert.match(cache, /^signed-data-proxy; hit; ttl=-\d+; detail=stale-if-error$/);
    }
    upstream.json('*', 8);
    const better = await answer({ q: 'a' });
    assert.deepEqual([JSON.parse(better.text).rawData, better.cache], [8, 'signed-data-proxy; fwd=miss']);
  });

  it('gives it to all who wait for one failure, and counts each of them once', async () => {
    const good = await answer({ q: 'b' });
    upstream.on('*', faults.slow(100, faults.serverError()));
    await ended();
    const lookups = async () => (await scrape(service)).table('cache_lookups_total');
    const before = await lookups();
    const stale = await Promise.all([1, 2, 3].map(() => answer({ q: 'b' })));
    assert.deepEqual(
      stale.map(({ text }) => text),
      Array(3).fill(good.text),
    );
    assert.deepEqual(await lookups(), { ...before, stale: (before.stale ?? 0) + 3 });
  });

  it('is no answer to another question, nor to one that the upstream refuses', async () => {
    await answer({ q: 'c' });
    await ended();
    upstream.on('*', faults.serverError());
    await refused(502, 'API call failed', 'e', { q: 'never asked' });
    upstream.on('*', faults.empty(404));
    await refused(502, 'API call failed', 'e', { q: 'c' });
  });

  it('ends, and is off unless it is configured', async () => {
    await answer({}, 'brief');
    await answer({}, 'none');
    upstream.on('*', faults.serverError());
    await setTimeout(3 * MAX_AGE);
    await refused(502, 'API call failed', 'brief');
    await refused(502, 'API call failed', 'none');
  });
});

describe('cache.staleWhileRevalidate', async () => {
  const cache = { maxAge: MAX_AGE, staleWhileRevalidate: '10m' };
  const endpoints = {
    e: { cache, parameters: [{ name: 'q' }] },
    brief: { cache: { ...cache, staleWhileRevalidate: 150, staleIfError: '10m' } },
    never: { cache: { ...cache, staleWhileRevalidate: 150 } },
  };
  const { upstream, service, refused, answer } = await keeping(endpoints, { env: { LOG_FORMAT: 'json' } });

  beforeEach(() => {
    upstream.json('*', 7);
    upstream.requests.length = 0;
  });

  it('gives the old answer while the upstream has not answered, to all, and asks it once', async () => {
    const old = await answer({ q: 'a' });
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    upstream.on('*', (...given) => held.then(() => faults.json(8)(...given)));
    await ended();
    for (const { text, cache: status } of await Promise.all([1, 2, 3].map(() => answer({ q: 'a' })))) {
      assert.equal(text, old.text);
      assert.match(status, STALE);
    }
    await upstream.until(() => upstream.requests.length > 1);
    assert.deepEqual([upstream.requests.length, upstream.open], [2, 1]);
    release();
    await eventually(async () => (await answer({ q: 'a' })).text !== old.text, 'the new answer');
    assert.equal(JSON.parse((await answer({ q: 'a' })).text).rawData, 8);
  });

  it('is counted as stale, and told so in the log', async () => {
    await answer({ q: 'b' });
    await ended();
    const table = async () => (await scrape(service)).table('cache_lookups_total');
    const lines = () => service.written().split('"cache":"stale"').length;
    const [before, told] = [await table(), lines()];
    await answer({ q: 'b' });
    await eventually(() => lines() > told, 'the line of the request');
    const after = await table();
    assert.equal((after.stale ?? 0) - (before.stale ?? 0), 1);
    assert.equal(after.miss, before.miss);
  });

  it('goes on where the upstream fails, says why in the log, and tries again', async () => {
    const old = await answer({ q: 'c' });
    upstream.on('*', faults.serverError());
    await ended();
    for (const failures of [1, 2]) {
      assert.equal((await answer({ q: 'c' })).text, old.text);
      const told = () => service.logs.filter(({ message }) => message === 'a cached answer could not be renewed');
      const { level, fields } = await eventually(() => told()[failures - 1], 'what became of it');
      assert.deepEqual([level, fields], ['info', { endpoint: 'api/e', detail: 'upstream status 500' }]);
      assert.equal(upstream.requests.filter(({ path }) => path === '/e?q=c').length, 1 + failures);
    }
  });

  it('ends: after it a request waits, and `staleIfError` has its own time', async () => {
    await answer({}, 'brief');
    await answer({}, 'never');
    await setTimeout(MAX_AGE + 170);
    upstream.on('*', faults.serverError());
    assert.match((await answer({}, 'brief')).cache, /detail=stale-if-error$/);
    await refused(502, 'API call failed', 'never');
    upstream.json('*', 8);
    assert.equal(JSON.parse((await answer({}, 'never')).text).rawData, 8);
  });
});
