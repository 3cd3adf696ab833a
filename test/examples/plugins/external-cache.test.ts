/** external-cache shares signed answers between instances, and does without its server. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { example } from '../../support/examples.ts';
import { suite } from '../../support/lifetime.ts';
import { oneApi, type RunningService, serviceFor } from '../../support/service.ts';
import { faults, type Handler, upstreamFor } from '../../support/upstream.ts';

/** Keeps bodies by their paths. */
const keeping =
  (entries: Map<string, string>): Handler =>
  (req, res, recorded) => {
    const { method, path, body } = recorded;
    if (method === 'PUT') entries.set(path, body);
    const entry = entries.get(path);
    return (entry === undefined ? faults.empty(404) : faults.text(entry))(req, res, recorded);
  };

describe('external-cache', async () => {
  const entries = new Map<string, string>();
  let calls = 0;

  const start = async (
    t: TestContext,
    more: object = {},
    env: Record<string, string> = {},
    headers: Record<string, string> = {},
  ) => {
    const endpoints = {
      kept: { keep: 60, parameters: [{ name: 'q' }, { name: 'key', fixed: 's3cret', secret: true }] },
      chosen: { keep: 60, encoding: { type: '*', path: '$.n' } },
      fresh: { path: '/fresh' },
    };
    const plugins = [example('external-cache', { url: `${store.url}/answers`, timeout: 2000, ...more })];
    const config = oneApi(upstream.url, endpoints, { api: { headers }, settings: { plugins } });
    return serviceFor(t, config, { env });
  };
  const ask = async (service: RunningService, name: string, parameters?: object) => {
    const response = await service.post(`api/${name}`, parameters);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return text;
  };
  const complaints = ({ logs }: RunningService) =>
    logs
      .filter(({ fields }) => fields.error !== undefined)
      .map(({ message, fields }) => {
        return `${message}: ${String(fields.error).split('\n', 1)}`;
      });

  const store = await upstreamFor(suite, { '*': keeping(entries) });
  const upstream = await upstreamFor(suite, {
    '*': (req, res, recorded) => {
      calls += 1;
      return faults.json({ n: calls })(req, res, recorded);
    },
  });

  it('an answer that one instance signed is what the others give', async (t) => {
    const one = await start(t);
    const other = await start(t);
    const first = await ask(one, 'kept', { q: 'a' });
    assert.equal(await ask(other, 'kept', { q: 'a' }), first);
    assert.equal(await ask(one, 'kept', { q: 'a' }), first);
    assert.equal(calls, 1);
    assert.deepEqual([...entries.values()], [first]);
    const { headers } = store.requests.find(({ method }) => method === 'PUT') ?? assert.fail('nothing was stored');
    assert.equal(headers['cache-control'], 'max-age=60');
  });

  it('what makes another answer has another key, which tells nothing', async (t) => {
    const one = await start(t);
    const texts = [
      await ask(one, 'kept', { q: 'b' }),
      await ask(one, 'kept'),
      await ask(one, 'chosen', { _type: 'uint256' }),
      await ask(one, 'chosen', { _type: 'int256' }),
      await ask(await start(t, {}, { SERVICE_PRIVATE_KEY: `0x${'42'.repeat(32)}` }), 'kept', { q: 'b' }),
      await ask(await start(t, {}, {}, { 'X-Tier': 'gold' }), 'kept', { q: 'b' }),
    ];
    assert.equal(new Set(texts).size, texts.length);
    for (const path of entries.keys()) assert.match(path, /^\/answers\/[0-9a-f]{64}$/);
  });

  it('endpoints without a time are left alone', async (t) => {
    const one = await start(t);
    const before = store.requests.length;
    assert.notEqual(await ask(one, 'fresh'), await ask(one, 'fresh'));
    assert.equal(store.requests.length, before);
  });

  it('what is no answer is not sent, and the log says so', async (t) => {
    const one = await start(t);
    await ask(one, 'kept', { q: 'c' });
    const last = [...entries.keys()].at(-1) ?? assert.fail('nothing was stored');
    const damages = { '{"a":1}': 'TypeError: an answer without a node', '[]': 'TypeError: an answer is a JSON object' };
    for (const [damaged, why] of Object.entries(damages)) {
      entries.set(last, damaged);
      await ask(one, 'kept', { q: 'c' });
      assert.equal(complaints(one).at(-1), `the look-up failed: ${why}`);
    }
  });

  it('nor is an answer of another endpoint, or of the future', async (t) => {
    const one = await start(t);
    const other: unknown = JSON.parse(await ask(one, 'chosen', { _type: 'int256' }));
    await ask(one, 'kept', { q: 'e' });
    const last = [...entries.keys()].at(-1) ?? assert.fail('nothing was stored');
    entries.set(last, JSON.stringify(other));
    await ask(one, 'kept', { q: 'e' });
    assert.equal(
      complaints(one).at(-1),
      `the look-up failed: Error: returned an answer of another endpoint: ${one.ids['api/chosen']}`,
    );
    const ahead = await start(t);
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() - 10_000 });
    const behind = await start(t);
    const answer = await ask(ahead, 'kept', { q: 'e' });
    const { timestamp } = JSON.parse(answer);
    assert.notEqual(await ask(behind, 'kept', { q: 'e' }), answer);
    assert.equal(
      complaints(behind).at(-1),
      `the look-up failed: Error: returned an answer of the future: ${timestamp}`,
    );
  });

  it('who ask for the same at the same time share one look-up and one call', async (t) => {
    const one = await start(t);
    store.on('*', faults.slow(500, keeping(entries)));
    const [asked, made] = [store.requests.length, calls];
    const texts = await Promise.all(Array.from({ length: 10 }, () => ask(one, 'kept', { q: 'f' })));
    assert.equal(new Set(texts).size, 1);
    assert.deepEqual([store.requests.slice(asked).map(({ method }) => method), calls - made], [['GET', 'PUT'], 1]);
    store.on('*', keeping(entries));
  });

  it('a store that fails, hangs or is gone costs no answer', async (t) => {
    const one = await start(t, { timeout: 200 });
    for (const [fault, why] of [
      [faults.serverError(), 'Error: the store answered 500'],
      [faults.hang(), 'RequestFailure'],
      [faults.reset(), 'RequestFailure'],
    ] as const) {
      store.on('*', fault);
      await ask(one, 'kept', { q: `d${why}` });
      const reasons = complaints(one).map((line) => line.slice(0, line.indexOf(why) + why.length));
      assert.deepEqual(reasons, [`the look-up failed: ${why}`, `keeping an answer failed: ${why}`]);
      one.logs.splice(0);
    }
    store.on('*', keeping(entries));
  });
});
