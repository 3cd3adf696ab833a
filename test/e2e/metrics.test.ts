/** Metrics count what happened, and hold nothing that a client chose. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { suite } from '../support/lifetime.ts';
import { metricsUrl, type Scrape, scrape, scrapeAfter, scrapeUntil } from '../support/metrics.ts';
import { pluginFile, pluginTools } from '../support/plugin-files.ts';
import { exchangeRaw, openRaw } from '../support/raw-http.ts';
import { reload } from '../support/reload.ts';
import { served, visit } from '../support/served.ts';
import {
  oneApi,
  type RunningService,
  serviceFor,
  startTestService,
  TEST_ADDRESS,
  TEST_KEY,
} from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const settings = { metrics: { port: 0 } };
const ENDPOINTS = '/endpoints/:endpointId';

/** Requests that name what no metric may have. */
const HIDDEN = [
  ['GET', '/HIDDEN?HIDDEN=HIDDEN'],
  ['PURGE', '/HIDDEN'],
  ['POST', '/endpoints/HIDDEN'],
  ['POST', `/endpoints/0x${'77'.repeat(32)}`],
  ['GET', '/requests/HIDDEN'],
  ['GET', '/health?HIDDEN'],
  ['OPTIONS', '/health'],
  ['PUT', '/health'],
] as const;

describe('metrics', { concurrency: 4 }, async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 1 }), '/broken': faults.serverError() });

  /** A service of these endpoints, whose metrics are on. */
  const start = (t: TestContext, endpoints: Parameters<typeof oneApi>[1] = { plain: {} }, more: object = {}) =>
    serviceFor(t, oneApi(upstream.url, endpoints, { settings, ...more }));

  const ask = async (service: RunningService, name: string, parameters?: unknown): Promise<number> => {
    const response = await service.post(name, parameters);
    await response.text();
    return response.status;
  };

  /** A counter's or a histogram's series out of the part of a scrape that follows from the requests alone. */
  const counts = (found: Scrape, name: string) => found.table(`${name}_count`);

  const shared = await serviceFor(suite, oneApi(upstream.url, { plain: {} }, { settings }));

  describe('count what happened, to the last request:', async () => {
    const picky = `onAfterApiCall: ({ endpoint }) => { if (endpoint === 'dropped') throw new Error('no'); }`;
    const endpoints = { plain: {}, cached: { cache: { maxAge: 600_000 } }, dropped: {}, broken: {} };
    const { service } = await served(suite, endpoints, {
      answers: { '*': faults.json({ price: 1 }), '/broken': faults.serverError() },
      sources: { picky: pluginFile('picky', picky) },
      server: { rateLimit: { max: 7, window: 1_000_000_000 } },
      settings,
    });
    const names = ['plain', 'plain', 'plain', 'cached', 'cached', 'dropped', 'broken', 'plain'];
    const statuses: number[] = [];
    for (const name of names) statuses.push(await ask(service, `api/${name}`));
    const found = await scrapeAfter(service, 8);

    it('requests and how they ended', () => {
      assert.deepEqual(statuses, [200, 200, 200, 200, 200, 403, 502, 429]);
      assert.deepEqual(found.happened('requests_total'), {
        [`${ENDPOINTS} api plain sync 200`]: 3,
        [`${ENDPOINTS} api cached sync 200`]: 2,
        [`${ENDPOINTS} api dropped sync 403`]: 1,
        [`${ENDPOINTS} api broken sync 502`]: 1,
        [`${ENDPOINTS}    429`]: 1,
      });
      const plain = { route: ENDPOINTS, api: 'api', endpoint: 'plain', mode: 'sync', status: '200' };
      assert.equal(found.value('requests_total', plain), 3);
      assert.deepEqual(counts(found, 'request_duration_seconds'), {
        'api plain sync': 3,
        'api cached sync': 2,
        'api dropped sync': 1,
        'api broken sync': 1,
      });
      assert.deepEqual(found.happened('outcomes_total'), {
        'api plain sync signed': 3,
        'api cached sync signed': 2,
        'api dropped sync refused': 1,
        'api broken sync refused': 1,
      });
    });

    it('calls of the upstream, the cache and limits', () => {
      assert.deepEqual(counts(found, 'upstream_call_seconds'), {
        'api plain ok ': 3,
        'api cached ok ': 1,
        'api dropped ok ': 1,
        'api broken failed status_5xx': 1,
      });
      assert.deepEqual(found.happened('cache_lookups_total'), { miss: 1, hit: 1 });
      assert.deepEqual([found.value('cache_entries'), found.value('rate_limited_total')], [1, 1]);
    });

    it('calls of plugins and runs of stages', () => {
      assert.deepEqual(found.happened('plugin_calls_total'), {
        'picky onAfterApiCall done': 4,
        'picky onAfterApiCall failed': 1,
      });
      assert.deepEqual(counts(found, 'plugin_budget_used_ratio'), { 'picky onAfterApiCall': 5 });
      assert.deepEqual(Object.keys(found.table('plugin_seconds_total')), ['picky onAfterApiCall']);
      const stages = Object.entries(counts(found, 'stage_duration_seconds'));
      assert.deepEqual(
        stages.filter(([stage]) => /^(admit|callApi|onAfterApiCall|sign|answer|present) /.test(stage)),
        [
          ['admit silent', 7],
          ['callApi answered', 5],
          ['onAfterApiCall answered', 4],
          ['sign answered', 4],
          ['answer answered', 5],
          ['present answered', 5],
          ['onAfterApiCall refused', 1],
          ['answer refused', 2],
          ['present refused', 2],
          ['callApi refused', 1],
          ['admit refused', 1],
        ],
      );
    });
  });

  it('count a payload of async mode when it ends, and a stream', async (t) => {
    const service = await start(t, { later: { mode: 'async' }, broken: { mode: 'async' }, live: { mode: 'stream' } });
    for (const [name, status] of Object.entries({ later: 'complete', broken: 'failed' })) {
      const record = await finished(service, await submitted(await service.post(`api/${name}`)));
      assert.equal(record.status, status);
    }
    assert.equal(await ask(service, 'api/live'), 200);
    const isTold = (seen: Scrape) => `${ENDPOINTS} api live stream 200` in seen.happened('requests_total');
    const found = await scrapeUntil(service, isTold);
    const requests = found.happened('requests_total');
    assert.deepEqual(found.happened('outcomes_total'), {
      'api later async signed': 1,
      'api broken async refused': 1,
      'api live stream signed': 1,
    });
    assert.equal(found.value('async_records'), 0, 'both are read');
    const accepted = ['later', 'broken'].map((name) => requests[`${ENDPOINTS} api ${name} async 202`]);
    assert.deepEqual(accepted, [1, 1]);
    assert.ok((requests['/requests/:requestId    200'] ?? 0) >= 2);
  });

  it('show what is under way: slots, and who waits for one; then a client that left', async (t) => {
    const { service } = await served(
      t,
      { slow: {} },
      { answers: { '*': faults.hang() }, settings: { ...settings, maxConcurrentApiCalls: 1 } },
    );
    const clients = [0, 1, 2].map(() => visit(service, 'api/slow'));
    const slots = async () => {
      const found = await scrape(service);
      return [found.value('upstream_slots_in_use'), found.value('upstream_slots_waiting')].join();
    };
    await eventually(async () => (await slots()) === '1,2');
    for (const { leave } of clients) leave();
    assert.deepEqual(await Promise.all(clients.map(({ outcome }) => outcome)), ['left', 'left', 'left']);
    const found = await scrapeAfter(service, 3);
    assert.deepEqual(found.happened('requests_total'), { [`${ENDPOINTS} api slow sync 499`]: 3 });
    await eventually(async () => (await slots()) === '0,0');
    assert.deepEqual((await scrape(service)).happened('outcomes_total'), { 'api slow sync abandoned': 3 });
  });

  it('tell what a plugin used of its budget, and what it was refused', async (t) => {
    const greedy = `${pluginTools}
      export default {
        name: 'greedy',
        setup: () => ({ hooks: { validate: () => block(30), respond: () => undefined } }),
      };`;
    const more = { sources: { greedy }, entries: { greedy: { timeout: 10 } }, settings };
    const { service } = await served(t, { plain: {} }, more);
    assert.equal(await ask(service, 'api/plain'), 403);
    const found = await scrapeAfter(service, 1);
    const once = { 'greedy validate exhausted': 1, 'greedy respond exhausted': 1 };
    assert.deepEqual(found.happened('plugin_calls_total'), once);
    // The second call never began.
    const used = found.table('plugin_seconds_total');
    assert.deepEqual(Object.keys(used), ['greedy validate']);
    assert.ok((used['greedy validate'] ?? 0) >= 0.03, 'the plugin blocked for 30 ms');
    const all = { 'greedy validate': 1, 'greedy respond': 1 };
    assert.deepEqual(found.table('plugin_budget_used_ratio_sum'), all);
    const below = { plugin: 'greedy', stage: 'validate', le: '0.99' };
    assert.equal(found.value('plugin_budget_used_ratio_bucket', below), 0);
  });

  it('are measured in seconds', async (t) => {
    const service = await start(t);
    const before = performance.now();
    assert.equal(await ask(service, 'api/plain'), 200);
    const found = await scrapeAfter(service, 1);
    const elapsed = (performance.now() - before) / 1000;
    const sums = ['request_duration_seconds', 'upstream_call_seconds', 'stage_duration_seconds'].flatMap((name) =>
      Object.values(found.table(`${name}_sum`)),
    );
    assert.ok(sums.length > 5 && sums.every((sum) => sum > 0 && sum < elapsed), `${sums} of ${elapsed}`);
  });

  it('hold nothing that a client chose, and nothing secret', async (t) => {
    const plain = { path: '/HIDDEN-upstream', parameters: [{ name: 'p' }] };
    const service = await start(
      t,
      { plain },
      {
        server: { rateLimit: { trustForwardedFor: true } },
        api: { auth: { type: 'apiKey', keys: ['HIDDEN-key-of-a-client'] } },
      },
    );
    const headers = { 'X-Forwarded-For': '203.0.113.77', 'X-HIDDEN': 'HIDDEN', 'User-Agent': 'HIDDEN' };
    const ids = [];
    for (const [method, path] of HIDDEN) {
      const response = await fetch(service.url + path, { method, headers });
      ids.push(response.headers.get('x-request-id'));
    }
    const keys = { ...headers, 'X-Api-Key': 'HIDDEN-key-of-a-client' };
    assert.equal((await service.post('api/plain', { p: 'HIDDEN' }, keys)).status, 200);
    assert.equal((await service.post('api/plain', { p: 'HIDDEN' }, headers)).status, 401);
    const found = await scrapeAfter(service, 10);
    const places = ['203.0.113', '127.0.0.1', upstream.url, service.url];
    const secrets = [...ids, ...places, 'HIDDEN', 'PURGE', TEST_KEY, '77'.repeat(16)];
    const told = secrets.filter((secret) => secret === null || found.text.includes(secret));
    assert.deepEqual(told, []);
    assert.deepEqual(found.happened('requests_total'), {
      '(no route)    404': 2,
      [`${ENDPOINTS}    404`]: 2,
      '/requests/:requestId    404': 1,
      '/health    200': 1,
      '*    204': 1,
      '/health    405': 1,
      [`${ENDPOINTS} api plain sync 200`]: 1,
      [`${ENDPOINTS} api plain sync 401`]: 1,
    });
  });

  it('are served at GET /metrics of their own port only', async () => {
    const url = metricsUrl(shared);
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    const origin = new URL(url).origin;
    assert.notEqual(origin, shared.url);
    const answers: [string, RequestInit, number, string][] = [
      [url, { method: 'POST', body: 'x' }, 405, '{"error":"Method Not Allowed"}'],
      [url, { method: 'HEAD' }, 405, ''],
      [`${url}/`, {}, 404, '{"error":"Not Found"}'],
      [origin, { method: 'DELETE' }, 404, '{"error":"Not Found"}'],
      [`${shared.url}/metrics`, {}, 404, '{"error":"Not Found"}'],
    ];
    for (const [target, init, status, body] of answers) {
      const response = await fetch(target, init);
      assert.deepEqual([response.status, await response.text()], [status, body], target);
      assert.equal(response.headers.get('allow'), status === 405 ? 'GET' : null);
    }
    assert.equal((await fetch(`${url}?debug=1`)).status, 200);
  });

  it('come with /health and /ready, for supervisors of a service that clients keep busy', async () => {
    const { origin } = new URL(metricsUrl(shared));
    const health = await fetch(`${origin}/health`);
    assert.deepEqual([health.status, await health.json()], [200, { status: 'ok', node: TEST_ADDRESS }]);
    assert.equal(health.headers.get('content-type'), 'application/json');
    const ready = await fetch(`${origin}/ready`);
    assert.deepEqual([ready.status, await ready.json()], [200, { status: 'ready' }]);
  });

  it('are not kept from anybody by connections that send nothing', async (t) => {
    const url = metricsUrl(await start(t));
    const silent = Array.from({ length: 200 }, () => openRaw(url));
    await Promise.any(silent.map(({ closed }) => closed));
    assert.equal((await fetch(url)).status, 200);
    let open = silent.length;
    for (const { closed } of silent) void closed.then(() => open--);
    await eventually(() => open <= 32, 'the limit of one address');
    for (const client of silent) client.destroy();
  });

  it('are absent unless the config asks for them', async (t) => {
    const service = await start(t, { plain: {} }, { settings: {} });
    assert.equal(await ask(service, 'api/plain'), 200);
    assert.ok(!service.logs.some(({ message }) => message.startsWith('metrics on')));
  });

  it('of two services in one process are apart', async (t) => {
    const one = await start(t);
    const other = await startTestService(oneApi(upstream.url, { plain: {} }, { settings }));
    assert.equal(await ask(one, 'api/plain'), 200);
    assert.deepEqual((await scrapeAfter(one, 1)).happened('outcomes_total'), { 'api plain sync signed': 1 });
    assert.deepEqual((await scrapeAfter(other, 0)).happened('outcomes_total'), {});
    await other.stop();
    assert.equal((await scrape(one)).value('async_records'), 0);
  });
});

describe('the hosts of the metrics', async () => {
  const hosts = ['Prometheus_1.internal', 'scraper.example.'];
  const config = { metrics: { port: 0, hosts } };
  const service = await serviceFor(suite, oneApi('https://a.example', { e: {} }, { settings: config }));
  const refused = '{"error":"Host not allowed: the operator can add it to settings.metrics.hosts"}';
  /** The status line and the body of the answer to a GET with these lines. */
  const get = async (path: string, lines: readonly string[], version = '1.1', of = service) => {
    const head = [`GET ${path} HTTP/${version}`, ...lines, 'Connection: close'].join('\r\n');
    const text = await exchangeRaw(metricsUrl(of), `${head}\r\n\r\n`);
    return { status: Number(text.split(' ')[1]), body: /\{.*\}/.exec(text)?.[0] };
  };

  const configured = ['prometheus_1.internal', 'PROMETHEUS_1.INTERNAL:9464', 'prometheus_1.internal.'];
  for (const host of [
    ...['127.0.0.1', '127.0.0.1:9464', '10.1.2.3:80', '[::1]', '[::1]:9464', '[2001:DB8::1]', '[fe80::1%25eth0]:9464'],
    ...['localhost', 'LocalHost:9464', 'localhost.', 'localhost.:1', '127.0.0.1.'],
    ...[...configured, 'scraper.example', 'scraper.example.'],
  ])
    it(`${host} is answered`, async () => {
      for (const path of ['/metrics', '/status?a'])
        assert.equal((await get(path, [`Host: ${host}`])).status, 200, path);
    });

  for (const host of [
    ...[
      'evil.example',
      'evil.example:9464',
      'localhost.evil.example',
      'a.localhost',
      '127.0.0.1.evil.example',
      '127.1',
    ],
    ...['2130706433', '0x7f000001', '::1', '[::1', '[localhost]', '[127.0.0.1]', '127.0.0.1:9464:1', '127.0.0.1:x'],
    ...['user@localhost', 'localhost/', 'localhost,evil.example', 'localhost..', '.', '', ':9464', 'x.scraper.example'],
  ])
    it(`${JSON.stringify(host)} is refused`, async () => {
      for (const path of ['/metrics', '/status'])
        assert.deepEqual(await get(path, [`Host: ${host}`]), { status: 403, body: refused }, path);
    });

  it('none is refused, and so are several', async () => {
    assert.deepEqual(await get('/metrics', [], '1.0'), { status: 403, body: refused });
    assert.equal((await get('/metrics', [])).status, 400);
    const several = ['Host: 127.0.0.1', 'Host: evil.example'];
    assert.deepEqual(await get('/metrics', several), { status: 403, body: refused });
    assert.deepEqual(await get('/metrics', several.toReversed()), { status: 403, body: refused });
  });

  it('a target with a host of its own is none of the pages, whatever stands in the header', async () => {
    const gone = { status: 404, body: '{"error":"Not Found"}' };
    for (const host of ['127.0.0.1', 'evil.example'])
      assert.deepEqual(await get(`http://${host}/metrics`, ['Host: 127.0.0.1']), gone);
  });

  it('probes may ask at any, and other paths tell nothing', async () => {
    for (const [path, status] of Object.entries({ '/health': 200, '/ready': 200, '/other': 404 }))
      assert.equal((await get(path, ['Host: lb.example'])).status, status);
  });

  it('a reload changes them; the log names the key, and the host of the first that was refused', async (t) => {
    const own = await serviceFor(t, oneApi('https://a.example', { e: {} }, { settings }));
    const ask = async () => (await get('/status', ['Host: a.example'], '1.1', own)).status;
    assert.deepEqual([await ask(), await ask()], [403, 403]);
    const message = 'the metrics were asked at a host that is not in settings.metrics.hosts';
    const warned = own.logs.filter((line) => line.message.includes('settings.metrics.hosts'));
    assert.deepEqual(warned, [{ level: 'warn', message, fields: { host: 'a.example' } }]);
    const named = { metrics: { port: 0, hosts: ['a.example'] } };
    assert.equal((await reload(own, oneApi('https://a.example', { e: {} }, { settings: named }))).done, true);
    assert.equal(await ask(), 200);
  });
});
