/** Each failure is counted by its class. */
import assert from 'node:assert/strict';
import { after, describe, it, type TestContext } from 'node:test';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { type Scrape, scrapeAfter } from '../support/metrics.ts';
import { knowNames } from '../support/names.ts';
import { pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { visit } from '../support/served.ts';
import { oneApi, type RunningService, serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { signerPlugin } from '../support/signer-plugin.ts';
import { faults, startUpstream, upstreamFor } from '../support/upstream.ts';

const metrics = { port: 0 };
const env = { LOG_FORMAT: 'json' };

/** Asserts which requests failed: the lines of the log say the same as the metric. */
function assertFailures({ logs }: RunningService, found: Scrape, expected: Readonly<Record<string, number>>): void {
  const said: Record<string, number> = {};
  for (const { message, fields } of logs) {
    if (message !== 'request' || fields.reason === undefined) continue;
    const kind = `${String(fields.endpoint).replace('/', ' ')} ${fields.reason}`;
    said[kind] = (said[kind] ?? 0) + 1;
  }
  assert.deepEqual(said, expected);
  assert.deepEqual(found.happened('failures_total'), expected);
}
const encoding = { type: 'int256', path: '$.price' };

const { files, plugins } = pluginFiles(
  {
    picky: pluginFile(
      'picky',
      `onBeforeApiCall: ({ endpoint }) => { if (endpoint === 'dropped') throw new Error('no'); }`,
    ),
    slow: pluginFile('slow', `onBeforeApiCall: ({ endpoint }) => endpoint === 'exhausted' ? sleep(60_000) : undefined`),
    kept: signerPlugin('classes'),
  },
  { slow: { timeout: 1000 } },
);

describe('a failure is counted by its class', async () => {
  knowNames({ after });
  const upstream = await upstreamFor(suite, {
    '*': faults.json({ price: 1 }),
    '/hang': faults.hang(),
    '/missing': faults.json({}, 404),
    '/broken': faults.serverError(),
    '/moved': faults.redirect('/'),
    '/garbled': faults.invalidJson(),
    '/cut': faults.closeHalfWay(),
  });
  const api = (name: string, url: string, endpoints: Parameters<typeof oneApi>[1], timeout = 20_000) =>
    oneApi(url, endpoints, { api: { name, timeout } }).apis[0];

  async function serviceWithFaults(t: TestContext) {
    const gone = await startUpstream();
    await gone.close();
    const config = {
      settings: { metrics, plugins, signer: { type: 'kept', key: TEST_KEY, fault: 'throws' } },
      apis: [
        api('api', upstream.url, {
          ...{ missing: {}, broken: {}, moved: {}, garbled: {}, cut: {} },
          ...{ unfit: { encoding: { ...encoding, path: '$.cost' } }, unsigned: {}, dropped: {}, exhausted: {} },
        }),
        api('slow', upstream.url, { hang: {} }, 100),
        api('nameless', 'http://unknown.test', { e: {} }),
        api('gone', gone.url, { e: {} }),
        api('plain', upstream.url.replace('http:', 'https:'), { e: {} }),
      ],
    };
    return serviceFor(t, config, { files, env });
  }

  it('of an upstream, a value, a signer, a plugin', async (t) => {
    const service = await serviceWithFaults(t);
    const faulty = ['missing', 'broken', 'moved', 'garbled', 'cut'].map((name) => `api/${name}`);
    for (const name of [...faulty, 'slow/hang', 'nameless/e', 'gone/e', 'plain/e'])
      await assertRefused(await service.post(name), 502, 'API call failed');
    await assertRefused(await service.post('api/unfit'), 502, 'No value found at path: $.cost');
    await assertRefused(await service.post('api/unsigned'), 502, 'Signing failed');
    await assertRefused(await service.post('api/dropped'), 403, 'Request dropped by plugin "picky"');
    await assertRefused(await service.post('api/exhausted'), 403, 'Plugin "slow" budget exhausted');
    // What a client does wrong is no failure.
    assert.equal((await service.post('api/missing', 7)).status, 400);
    const found = await scrapeAfter(service, 14);
    const ofUpstream = {
      'api missing status_4xx': 1,
      'api broken status_5xx': 1,
      'api moved body': 1,
      'api garbled body': 1,
      'api cut body': 1,
      'slow hang timeout': 1,
      'nameless e dns': 1,
      'gone e connect': 1,
      'plain e tls': 1,
    };
    const upstreamFailures = { ...ofUpstream, 'api unfit encode': 1 };
    assert.deepEqual(found.happened('upstream_failures_total'), upstreamFailures);
    assertFailures(service, found, {
      ...upstreamFailures,
      'api unsigned signer': 1,
      'api dropped plugin': 1,
      'api exhausted plugin': 1,
    });
    const calls = Object.entries(ofUpstream).map(([words, count]) => [words.replace(/ (\S+)$/, ' failed $1'), count]);
    assert.deepEqual(found.table('upstream_call_seconds_count'), {
      ...Object.fromEntries(calls),
      'api unfit ok ': 1,
      'api unsigned ok ': 1,
    });
  });

  it('never an unpaid challenge, nor a header that is no proof, of which no operator is warned', async (t) => {
    const gone = 'http://127.0.0.1:9';
    const token = `0x${'11'.repeat(20)}`;
    const accept = { network: 'eip155:1', asset: token, amount: '1', payTo: TEST_ADDRESS };
    const exact = { facilitator: gone, accepts: [{ ...accept, extra: { name: 'T', version: '1' } }] };
    const native = { network: 1, rpc: gone, token, amount: '1', recipient: TEST_ADDRESS };
    const endpoints = {
      native: { auth: { type: 'x402', ...native } },
      exact: { auth: { type: 'x402-exact', ...exact } },
    };
    const service = await serviceFor(t, oneApi(upstream.url, endpoints, { settings: { metrics } }), { env });
    assert.equal((await service.post('api/native')).status, 402);
    assert.equal((await service.post('api/native', {}, { 'X-Payment-Proof': '{}' })).status, 402);
    assert.equal((await service.post('api/exact')).status, 402);
    const found = await scrapeAfter(service, 3);
    assertFailures(service, found, {});
    const warned = service.logs.filter(({ level, fields }) => level === 'warn' && fields.requestId !== undefined);
    assert.deepEqual([warned, service.logs.filter(({ level }) => level === 'error')], [[], []]);
  });

  it('of a call that gets no slot', async (t) => {
    const settings = { metrics, maxConcurrentApiCalls: 1 };
    const apis = [api('holds', upstream.url, { hang: {} }, 60_000), api('waits', upstream.url, { e: {} }, 100)];
    const service = await serviceFor(t, { settings, apis }, { env });
    const holds = visit(service, 'holds/hang');
    await upstream.until(() => upstream.open === 1);
    await assertRefused(await service.post('waits/e'), 503, 'Server busy');
    holds.leave();
    assert.equal(await holds.outcome, 'left');
    const found = await scrapeAfter(service, 2);
    assertFailures(service, found, { 'waits e busy': 1 });
    assert.deepEqual(found.happened('upstream_failures_total'), {});
  });

  it('once for an answer that several wait for, and by each request that does', async (t) => {
    upstream.on('/shared', faults.slow(200, faults.serverError()));
    const config = oneApi(upstream.url, { shared: { cache: { maxAge: 1000 } } }, { settings: { metrics } });
    const service = await serviceFor(t, config, { env });
    const asked = [0, 1, 2].map(() => service.post('api/shared'));
    for (const response of asked) await assertRefused(await response, 502, 'API call failed');
    const found = await scrapeAfter(service, 3);
    assertFailures(service, found, { 'api shared status_5xx': 3 });
    assert.deepEqual(found.happened('upstream_failures_total'), { 'api shared status_5xx': 1 });
  });

  describeServers('of the engine of settings.state', (program) => {
    it('that is away', async (t) => {
      const redis = await redisFor(t, program);
      const state = { type: 'redis', url: redis.url };
      const config = oneApi(upstream.url, { later: { mode: 'async' } }, { settings: { metrics, state } });
      const service = await serviceFor(t, config, { env });
      await redis.kill();
      await assertRefused(await service.post('api/later'), 503, 'Service Unavailable');
      const found = await scrapeAfter(service, 1);
      assertFailures(service, found, { 'api later engine': 1 });
    });
  });
});
