/** Hundreds of requests at once get answers that verify, in each mode, or a 503 where there is no room. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { finished, submitted } from '../support/async.ts';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

/** Says what it was asked. */
const echo: Handler = (...request) => {
  const [, , { path }] = request;
  const q = new URL(path, 'http://x').searchParams.get('q');
  return faults.json({ value: Number(q) })(...request);
};

describe('200 requests at once all verify', async () => {
  const parameters = [{ name: 'q', required: true }];
  const encoding = { type: 'uint256', path: '$.value' };
  const endpoints = {
    sync: { parameters, encoding },
    raw: { parameters },
    cached: { parameters, encoding, cache: { maxAge: 600_000 } },
    stream: { parameters, encoding, mode: 'stream' },
    async: { parameters, encoding, mode: 'async' },
  };
  const server = { rateLimit: { max: 1_000_000, trustForwardedFor: true } };
  const { upstream, service } = await served(suite, endpoints, { server });
  upstream.on('*', (...request) => {
    assert.ok(upstream.open <= 50, 'never more than settings.maxConcurrentApiCalls, default 50');
    return echo(...request);
  });

  const many = <T>(count: number, one: (i: number) => Promise<T>) =>
    Promise.all(Array.from({ length: count }, (_, i) => one(i)));
  /** What a service that shares its process with its clients, on a busy machine, sheds: they come again, as it tells them. */
  const post = async (name: string, q: number, headers = {}): Promise<Response> => {
    for (;;) {
      const response = await service.post(`api/${name}`, { q }, headers);
      const pause = response.headers.get('retry-after');
      if (response.status !== 503 || pause === null) return response;
      assert.deepEqual(await response.json(), { error: 'Server busy' });
      await setTimeout(Number(pause) * 1000);
    }
  };
  /** Verified when all are there: that takes the time of the service, too. */
  const answers = async (name: string) => (await many(200, (i) => post(name, i))).entries();

  const assertEncoded = async (name: string) => {
    for (const [i, response] of await answers(name)) {
      const { data } = await verifyEncoded(response, TEST_ADDRESS);
      assert.equal(BigInt(data), BigInt(i));
    }
  };

  for (const name of ['sync', 'cached']) it(name, () => assertEncoded(name));

  it('cached, again: all from the cache', async () => {
    const calls = upstream.requests.length;
    await assertEncoded('cached');
    assert.equal(upstream.requests.length, calls);
  });

  it('raw', async () => {
    for (const [i, response] of await answers('raw')) {
      const { rawData } = await verifyRaw(response, TEST_ADDRESS);
      assert.deepEqual(rawData, { value: i });
    }
  });

  it('stream', async () => {
    for (const [i, response] of await answers('stream')) {
      const { done, ...signed } = JSON.parse((await response.text()).replace('data: ', ''));
      assert.equal(done, true);
      assert.equal(BigInt((await verifyEncoded(signed, TEST_ADDRESS)).data), BigInt(i));
    }
  });

  it('async: all that the store has room for, the others get 503; and again once these were read', async () => {
    for (const first of [0, 200]) {
      const outcomes = await many(200, async (i) => {
        const response = await post('async', first + i, { 'X-Forwarded-For': `203.0.113.${i % 8}` });
        if (response.status !== 503) return { i, submission: await submitted(response) };
        assert.deepEqual(await response.json(), { error: 'Service Unavailable' });
        return undefined;
      });
      const accepted = outcomes.flatMap((outcome) => (outcome === undefined ? [] : [outcome]));
      assert.equal(accepted.length, 100);
      for (const { i, submission } of accepted) {
        const { requestId, status, pollUrl, ...signed } = await finished(service, submission);
        assert.deepEqual({ requestId, status, pollUrl }, { ...submission, status: 'complete' });
        assert.equal(BigInt((await verifyEncoded(signed, TEST_ADDRESS)).data), BigInt(first + i));
      }
    }
  });
});
