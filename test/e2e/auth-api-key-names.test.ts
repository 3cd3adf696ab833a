/** API keys with names have limits of their own, and the log has their names alone. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { errorsOf, warningsOf } from '../support/config.ts';
import { suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { type RunningService, serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const ADA = 'a'.repeat(32);
const ADA_NEW = 'b'.repeat(32);
const BOB = 'c'.repeat(32);
const PLAIN = 'd'.repeat(32);
const HOUR = 3_600_000;

describe('API keys with names', { concurrency: 4 }, async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('/p', { price: 1 });

  const configOf = (keys: readonly unknown[], more: object = {}) => ({
    settings: { metrics: { port: 0 } },
    apis: [
      {
        name: 'one',
        url: upstream.url,
        auth: { type: 'apiKey', keys },
        endpoints: [{ name: 'p', path: '/p' }],
        ...more,
      },
      { name: 'two', url: upstream.url, auth: { type: 'apiKey', keys }, endpoints: [{ name: 'q', path: '/p?q' }] },
    ],
  });

  async function start(t: TestContext, config: Readonly<Record<string, unknown>>) {
    return await serviceFor(t, config);
  }

  const ask = (service: RunningService, key: string, endpoint = 'one/p') =>
    service.post(endpoint, {}, { 'X-Api-Key': key });

  const linesOf = (service: RunningService) =>
    service.logs.flatMap(({ message, fields }) =>
      / (\d{3}) [\d.]+ms$/.test(message) && fields.endpointId ? [[/ (\d{3}) /.exec(message)?.[1], fields.client]] : [],
    );

  it('are accepted like others; the name stands in the log line, the key nowhere', async (t) => {
    const service = await start(t, configOf([PLAIN, { name: 'ada', key: ADA }]));
    assert.deepEqual((await ask(service, ADA)).status, 200);
    assert.deepEqual((await ask(service, PLAIN)).status, 200);
    assert.deepEqual((await ask(service, BOB)).status, 401);
    assert.deepEqual(linesOf(service), [
      ['200', 'ada'],
      ['200', undefined],
      ['401', undefined],
    ]);
    const log = JSON.stringify(service.logs);
    for (const key of [ADA, PLAIN, BOB]) assert.ok(!log.includes(key));
  });

  it('have a limit of their own, for all keys of one name on all APIs together', async (t) => {
    const rateLimit = { window: HOUR, max: 2 };
    const keys = [
      { name: 'ada', key: ADA, rateLimit },
      { name: 'ada', key: ADA_NEW, rateLimit },
      { name: 'bob', key: BOB },
    ];
    const service = await start(t, configOf(keys));
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
    const withLimit = (max: number) => configOf([{ name: 'ada', key: ADA, rateLimit: { window: HOUR, max } }]);
    const service = await start(t, withLimit(1));
    const reload = async (max: number) => {
      const text = stringify({ version: '1.0', server: { port: 0, drainDelay: 0 }, ...withLimit(max) });
      await writeFile(join(service.folder, 'config.yaml'), text);
      assert.equal(await service.reload(() => ({})), true);
    };
    assert.equal((await ask(service, ADA)).status, 200);
    await reload(1);
    assert.equal((await ask(service, ADA)).status, 429);
    await reload(2);
    assert.equal((await ask(service, ADA)).status, 200);
  });

  it('let the next method have its say when the limit is reached', async (t) => {
    const keys = [{ name: 'ada', key: ADA, rateLimit: { window: HOUR, max: 1 } }];
    const auth = [
      { type: 'apiKey', keys },
      { type: 'apiKey', keys: [ADA] },
    ];
    const service = await start(t, configOf([PLAIN], { auth }));
    for (const status of [200, 200]) assert.equal((await ask(service, ADA)).status, status);
  });

  it('are counted by name and outcome', async (t) => {
    const keys = [
      { name: 'ada', key: ADA, rateLimit: { window: HOUR, max: 1 } },
      { name: 'bob', key: BOB },
    ];
    const service = await start(t, configOf(keys));
    for (const key of [ADA, ADA, BOB, BOB]) await ask(service, key);
    const table = (await scrape(service)).table('api_key_requests_total');
    assert.deepEqual(table, { 'ada accepted': 1, 'ada limited': 1, 'bob accepted': 2 });
  });

  it('are checked with the config', async () => {
    const rateLimit = { window: 1000, max: 1 };
    const errors = (keys: readonly unknown[]) => errorsOf(configOf(keys));
    const at = 'apis[0].auth.keys';
    assert.deepEqual(
      (
        await errors([
          { name: 'a', key: ADA, rateLimit },
          { name: 'a', key: BOB },
        ])
      ).filter((line) => line.startsWith(at)),
      [`${at}[1].rateLimit: "a" has another limit elsewhere: keys of one name share it`],
    );
    assert.deepEqual(
      (await errors([ADA, { name: 'a', key: ADA }])).filter((line) => line.startsWith(at)),
      [`${at}[1]: is the same key as one before it`],
    );
    // Before a rotation two variables may have one value.
    assert.deepEqual(
      (await warningsOf(configOf([ADA, BOB, ADA]))).filter((line) => line.startsWith(at)),
      [`${at}[2]: is the same key as one before it`],
    );
    assert.deepEqual(
      (await errors([{ name: 'a', key: ' x'.repeat(20) }])).filter((line) => line.startsWith(at)),
      [`${at}[0].key: can never match: a header holds no such character there`],
    );
    for (const wrong of [
      { name: 'a' },
      { key: ADA },
      { name: 'a b', key: ADA },
      { name: '', key: ADA },
      { name: 'a', key: ADA, rateLimit: { max: 1 } },
    ])
      assert.notDeepEqual(await errors([wrong]), [], JSON.stringify(wrong));
    assert.deepEqual(
      (await warningsOf(configOf([{ name: 'a', key: 'short' }]))).filter((line) => line.startsWith(at)),
      [`${at}[0].key: has fewer than 16 characters and can be guessed: use a random one, such as 32 hex digits`],
    );
  });
});
