/** API keys with names have limits of their own, and the log has their names alone. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const ADA = 'a'.repeat(32);
const ADA_NEW = 'b'.repeat(32);
const BOB = 'c'.repeat(32);
const PLAIN = 'd'.repeat(32);
const HOUR = 3_600_000;

describe('API keys with names', { concurrency: 4 }, async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 1 }) });

  const configOf = (keys: readonly unknown[], more: object = {}) => {
    const auth = { type: 'apiKey', keys };
    const [one] = oneApi(upstream.url, { p: {} }, { api: { name: 'one', auth, ...more } }).apis;
    const [two] = oneApi(upstream.url, { q: {} }, { api: { name: 'two', auth } }).apis;
    return { settings: { metrics: { port: 0 } }, apis: [one, two] };
  };
  const named = (name: string, key: string, max?: number, window = HOUR) => ({
    ...{ name, key },
    ...(max !== undefined && { rateLimit: { window, max } }),
  });

  const ask = (service: RunningService, key: string, endpoint = 'one/p') =>
    service.post(endpoint, {}, { 'X-Api-Key': key });

  const linesOf = (service: RunningService) =>
    service.logs.flatMap(({ message, fields }) =>
      / (\d{3}) [\d.]+ms$/.test(message) && fields.endpointId ? [[/ (\d{3}) /.exec(message)?.[1], fields.client]] : [],
    );

  it('are accepted like others; the name stands in the log line, the key nowhere', async (t) => {
    const service = await serviceFor(t, configOf([PLAIN, named('ada', ADA)]));
    const statuses = [];
    for (const key of [ADA, PLAIN, BOB]) statuses.push((await ask(service, key)).status);
    assert.deepEqual(statuses, [200, 200, 401]);
    assert.deepEqual(linesOf(service), [
      ['200', 'ada'],
      ['200', undefined],
      ['401', undefined],
    ]);
    const log = JSON.stringify(service.logs);
    for (const key of [ADA, PLAIN, BOB]) assert.ok(!log.includes(key));
  });

  it('have a limit of their own, for all keys of one name on all APIs together', async (t) => {
    const keys = [named('ada', ADA, 2), named('ada', ADA_NEW, 2), named('bob', BOB)];
    const service = await serviceFor(t, configOf(keys));
    assert.equal((await ask(service, ADA)).status, 200);
    assert.equal((await ask(service, ADA_NEW, 'two/q')).status, 200);
    const refused = await ask(service, ADA);
    assert.deepEqual([refused.status, await refused.json()], [429, { error: 'Too Many Requests' }]);
    const seconds = Number(refused.headers.get('Retry-After'));
    assert.ok(seconds > 1790 && seconds <= 1800, String(seconds));
    for (let i = 0; i < 5; i++) assert.equal((await ask(service, BOB)).status, 200);
    assert.deepEqual(linesOf(service).slice(0, 3), [
      ['200', 'ada'],
      ['200', 'ada'],
      ['429', 'ada'],
    ]);
    assert.ok(!service.logs.some(({ level, message }) => level === 'warn' && message === 'Too Many Requests'));
  });

  it('keep to their limit over a reload, and get a new one when it changes', async (t) => {
    const withLimit = (max: number, window = HOUR) => configOf([named('ada', ADA, max, window)]);
    const service = await serviceFor(t, withLimit(1));
    assert.equal((await ask(service, ADA)).status, 200);
    for (const [max, window, status] of [
      [1, HOUR, 429],
      [1, HOUR - 1, 200],
      [2, HOUR - 1, 200],
    ] as const) {
      assert.equal((await reload(service, withLimit(max, window))).done, true);
      assert.equal((await ask(service, ADA)).status, status);
    }
  });

  it('let the next method have its say when the limit is reached', async (t) => {
    const auth = [[named('ada', ADA, 1)], [ADA]].map((keys) => ({ type: 'apiKey', keys }));
    const service = await serviceFor(t, configOf([PLAIN], { auth }));
    for (const status of [200, 200]) assert.equal((await ask(service, ADA)).status, status);
  });

  it('are counted by name and outcome', async (t) => {
    const service = await serviceFor(t, configOf([named('ada', ADA, 1), named('bob', BOB)]));
    for (const key of [ADA, ADA, BOB, BOB]) await ask(service, key);
    const table = (await scrape(service)).table('api_key_requests_total');
    assert.deepEqual(table, { 'ada accepted': 1, 'ada limited': 1, 'bob accepted': 2 });
  });
});
