/** `cache.staleIfError`: an answer that has ended stands in where there is no new one. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

const MAX_AGE = 100;

describe('cache.staleIfError', async () => {
  const endpoints = {
    e: { cache: { maxAge: MAX_AGE, staleIfError: '10m' }, receipt: true, parameters: [{ name: 'q' }] },
    brief: { cache: { maxAge: MAX_AGE, staleIfError: MAX_AGE } },
    none: { cache: { maxAge: MAX_AGE } },
  };
  const more = { api: { timeout: 400 }, settings: { metrics: { port: 0 } } };
  const { upstream, service, post, refused } = await served(suite, endpoints, more);

  beforeEach(() => upstream.json('*', 7));

  const answer = async (parameters: object = {}, name = 'e') => {
    const response = await post(name, parameters);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return { text, cache: response.headers.get('cache-status') ?? '' };
  };
  const ended = () => setTimeout(MAX_AGE + 20);

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

  it('gives it to all who wait for one failure, and counts them', async () => {
    const good = await answer({ q: 'b' });
    upstream.on('*', faults.slow(100, faults.serverError()));
    await ended();
    const before = (await scrape(service)).table('cache_lookups_total').stale ?? 0;
    const stale = await Promise.all([1, 2, 3].map(() => answer({ q: 'b' })));
    assert.deepEqual(
      stale.map(({ text }) => text),
      Array(3).fill(good.text),
    );
    assert.equal((await scrape(service)).table('cache_lookups_total').stale, before + 3);
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
