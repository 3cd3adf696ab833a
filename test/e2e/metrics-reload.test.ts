/** Metrics go on over a reload, are there from the start to the end, and cost nobody an answer. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { metricsUrl, scrape, scrapeAfter } from '../support/metrics.ts';
import { idOf, postTo, reload } from '../support/reload.ts';
import { served } from '../support/served.ts';
import { encoding, oneApi, type RunningService, serviceFor, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const HERE = { port: 0 };
const IN_USE = 'the port is in use: end what has it, or set another settings.metrics.port';
/** Another address of the same machine. */
const THERE = { port: 0, host: '127.0.0.2' };

/** A port of this address that somebody has. */
async function takenPort(t: TestContext, host: string): Promise<number> {
  const occupant = createServer().listen(0, host);
  t.after(() => occupant.close());
  await once(occupant, 'listening');
  return (occupant.address() as AddressInfo).port;
}

describe('metrics over a reload of the config', { concurrency: 4 }, async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 1 }) });

  const configOf = (metrics?: object, more: object = {}) =>
    oneApi(upstream.url, { plain: {} }, { settings: { ...(metrics && { metrics }), ...more } });

  /** Reloads. @returns whether the service took it. */
  const takes = async (service: RunningService, config: Parameters<typeof reload>[1]) =>
    (await reload(service, config)).done;

  const ask = async (service: RunningService): Promise<void> => {
    const response = await service.post('api/plain');
    assert.equal(response.status, 200, await response.text());
  };

  /** A service that has been asked once. */
  const start = async (t: TestContext, metrics: object, files: Readonly<Record<string, string>> = {}) => {
    const service = await serviceFor(t, configOf(metrics), { files });
    await ask(service);
    return service;
  };

  /** What a service counts once it has counted that many requests. */
  const counted = async (service: RunningService, requests: number) => {
    const found = await scrapeAfter(service, requests);
    return {
      signed: found.happened('outcomes_total')['api plain sync signed'],
      called: found.table('upstream_call_seconds_count')['api plain ok '],
    };
  };

  const refuses = (url: string) =>
    assert.rejects(fetch(url), ({ cause }: Error) => {
      assert.match(String(Object(cause).code), /^(ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET)$/);
      return true;
    });

  /** Asks until nobody listens: the server before closes once the requests before have ended. */
  const closed = async (url: string): Promise<void> => {
    const ask = async () => (await fetch(url)).text();
    await eventually(async () => (await ask().catch(() => '')) === '', 'the server before to be closed');
    await refuses(url);
  };

  const lines = ({ logs }: RunningService) =>
    logs.flatMap(({ message }) => (message.startsWith('metrics on') ? [message] : []));

  it('go on where they were, at the same port', async (t) => {
    const service = await start(t, HERE);
    assert.ok(await takes(service, configOf(HERE, { maxConcurrentApiCalls: 7 })));
    await ask(service);
    assert.ok(await takes(service, configOf(HERE)));
    await ask(service);
    assert.deepEqual(await counted(service, 3), { signed: 3, called: 3 });
    assert.equal(lines(service).length, 1);
  });

  it('go on at another address, and the one before closes', async (t) => {
    const service = await start(t, HERE);
    const before = metricsUrl(service);
    assert.ok(await takes(service, configOf(THERE)));
    assert.match(metricsUrl(service), /^http:\/\/127\.0\.0\.2:\d+\/metrics$/);
    await ask(service);
    assert.deepEqual(await counted(service, 2), { signed: 2, called: 2 });
    await closed(before);
  });

  it('stay where they are when the new port cannot be had', async (t) => {
    const port = await takenPort(t, '127.0.0.2');
    const service = await start(t, HERE);
    assert.equal(await takes(service, configOf({ ...THERE, port })), false);
    const errors = service.logs.filter(({ level }) => level === 'error').map(({ message }) => message);
    assert.equal(errors[0], `plugin "metrics" cannot start: cannot listen on 127.0.0.2:${port}: ${IN_USE}`);
    await ask(service);
    assert.deepEqual(await counted(service, 2), { signed: 2, called: 2 });
  });

  it('stay where they are when a plugin of the new config cannot start', async (t) => {
    const lame = `export default { name: 'lame', setup: () => ({ start: () => { throw new Error('no'); } }) };`;
    const service = await start(t, HERE, { 'lame.mjs': lame });
    assert.equal(await takes(service, configOf(THERE, { plugins: [{ source: './lame.mjs' }] })), false);
    await ask(service);
    // The address of the config that failed was named last.
    const [first = '', second = ''] = lines(service).map((line) => line.replace('metrics on ', ''));
    await refuses(second);
    const found = await scrapeAfter({ logs: service.logs.filter(({ message }) => message.endsWith(first)) }, 2);
    assert.equal(found.table('upstream_call_seconds_count')['api plain ok '], 2);
  });

  it('end with a config without them, and begin anew with one, with what other plugins count', async (t) => {
    const service = await start(t, HERE);
    const before = metricsUrl(service);
    const audited = { audit: { path: 'audit' } };
    assert.ok(await takes(service, configOf(undefined, audited)));
    await closed(before);
    await ask(service);
    assert.ok(await takes(service, configOf(HERE, audited)));
    assert.equal((await scrape(service)).table('audit_lines_total').lost, 0);
    await ask(service);
    assert.deepEqual(await counted(service, 1), { signed: 1, called: 1 });
    assert.equal(lines(service).length, 2);
  });

  it('count the requests that end by the config before', async (t) => {
    const service = await serviceFor(t, configOf(HERE));
    const release: (() => void)[] = [];
    upstream.on('/held', (...request) => void release.push(() => faults.json({ price: 1 })(...request)));
    assert.ok(await takes(service, oneApi(upstream.url, { held: {} }, { settings: { metrics: HERE } })));
    const asked = postTo(service, idOf(upstream.url, '/held'));
    await upstream.untilRequested('/held');
    const before = metricsUrl(service);
    assert.ok(await takes(service, configOf(THERE)));
    // Both are there while a request of the config before is under way.
    assert.equal((await fetch(before)).status, 200);
    for (const go of release) go();
    assert.equal((await asked).status, 200);
    const found = await scrapeAfter(service, 1);
    assert.deepEqual(found.happened('outcomes_total'), { 'api held sync signed': 1 });
    await closed(before);
  });
});

describe('metrics at the start and the end of a service', () => {
  const configOf = (metrics: object) => oneApi('http://127.0.0.1:9', { e: {} }, { settings: { metrics } });

  it('a port that is in use stops the start with one line', async (t) => {
    const port = await takenPort(t, '127.0.0.1');
    const message = `plugin "metrics" cannot start: cannot listen on 127.0.0.1:${port}: ${IN_USE}`;
    await assert.rejects(startTestService(configOf({ port })), { message });
  });

  it('a host that is none stops it too', async () => {
    const cure = 'set settings.metrics.host to one that it has, or to 0.0.0.0 for all';
    const why = `EADDRNOTAVAIL: no interface of this machine has the address; ${cure}`;
    const message = `plugin "metrics" cannot start: cannot listen on 192.0.2.1:0: ${why}`;
    await assert.rejects(startTestService(configOf({ port: 0, host: '192.0.2.1' })), { message });
    const named = /no\.invalid:0: (?:ENOTFOUND|EAI_AGAIN): set settings\.metrics\.host to an address of this machine$/;
    await assert.rejects(startTestService(configOf({ port: 0, host: 'no.invalid' })), { message: named });
  });

  it('the port closes with the service, whatever connections it has', async () => {
    const service = await startTestService(configOf(HERE));
    const url = metricsUrl(service);
    await (await fetch(url)).text();
    await service.stop();
    await assert.rejects(fetch(url));
  });

  it('mistakes in measuring are logged once and refuse nobody', async (t) => {
    const clumsy = `export default { name: 'clumsy', setup({ meters }) {
      const count = meters.counter({ name: 'odd_total', help: 'x', labels: ['a'] });
      const seconds = meters.histogram({ name: 'odd_seconds', help: 'x' });
      meters.gauge({ name: 'odd', help: 'x' }, () => { throw new Error('no value'); });
      meters.gauge({ name: 'odder', help: 'x' }, () => 'text');
      const labels = { a: 'kept' };
      return { hooks: { onBeforeApiCall() {
        count(labels, 1); labels.a = 'changed'; count({ b: 'x' }, 1); seconds({}, NaN); count({ a: 'kept' }, -1);
      } } };
    } };`;
    const answers = { '*': faults.json({ price: 1 }) };
    const more = { answers, sources: { clumsy }, settings: { metrics: HERE } };
    const { service, post } = await served(t, { plain: {} }, more);
    for (let i = 0; i < 2; i++) assert.equal((await post('plain')).status, 200);
    await scrapeAfter(service, 2);
    const found = await scrapeAfter(service, 2);
    assert.deepEqual(found.table('odd_total'), { kept: 1, changed: 1 });
    assert.deepEqual([found.value('odd'), found.value('odder'), found.value('odd_seconds_count')], [NaN, NaN, 0]);
    const complaints = service.logs.filter(({ message }) => message === 'an instrument cannot be measured');
    const { odd, odd_seconds, ...rest } = Object.fromEntries(
      complaints.map(({ fields }) => [fields.instrument, fields.error]),
    );
    assert.deepEqual([odd, odd_seconds?.split('\n')[0]], ['no value', 'Error: measured NaN']);
    assert.deepEqual([complaints.length, Object.keys(rest).toSorted()], [4, ['odd_total', 'odder']]);
  });

  it('a sink that throws costs no slot and no answer, and is named once for each instrument', async (t) => {
    const exporter = `const boom = () => { throw new Error('the exporter is down'); };
      export default {
        name: 'exporter',
        setup: ({ meters }) => ({ start: () => meters.connect({ counter: () => boom, histogram: () => boom, gauge: boom }) }),
      };`;
    const parameters = [{ name: 'q' }];
    const endpoints = { plain: { encoding, parameters }, cached: { encoding, parameters, cache: { maxAge: 60_000 } } };
    const { upstream, service, encoded } = await served(t, endpoints, {
      answers: { '*': faults.json({ price: 7 }) },
      sources: { exporter },
      api: { timeout: 2000 },
      settings: { maxConcurrentApiCalls: 2 },
    });
    for (let q = 0; q < 4; q++) {
      await encoded('plain', { q });
      await Promise.all([encoded('cached', { q }), encoded('cached', { q })]);
    }
    assert.equal(upstream.requests.length, 8);
    const told = service.logs.filter(({ message }) => message === 'an instrument cannot be measured');
    const names = told.map(({ fields }) => fields.instrument);
    assert.deepEqual(names.toSorted(), [
      ...['async_records', 'cache_bytes', 'cache_entries', 'cache_lookups_total'],
      ...['config_last_reload_success_timestamp_seconds', 'config_last_reload_successful'],
      ...['upstream_call_seconds', 'upstream_certificate_ends_seconds'],
      ...['upstream_slots_in_use', 'upstream_slots_waiting'],
    ]);
    for (const { level, fields } of told) {
      assert.equal(level, 'warn');
      assert.match(String(fields.error), /^Error: the exporter is down\n/);
    }
  });
});
