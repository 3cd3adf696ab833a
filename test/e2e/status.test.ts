/** The status of a service tells how it is, by its socket. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { status } from '../../builtins/status.ts';
import { clientName } from '../../plugins-sdk/index.ts';
import { packageVersion } from '../../service/surroundings.ts';
import { testPlugin } from '../../service/testing.ts';
import { suite } from '../support/lifetime.ts';
import { metricsUrl } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { oneApi, type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

type Endpoints = Parameters<typeof oneApi>[1];

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const KEYS = Array.from({ length: 12 }, (_, i) => ({ name: `client-${i}`, key: `${i}`.padStart(32, 'k') }));
const local = { role: 'current', type: 'environment', address: TEST_ADDRESS, state: 'up' };

/** `GET /status` at the port of the metrics: what every process shows, and the operator's way to see a running service. */
describe('the status of a service', { concurrency: 4 }, async () => {
  const upstream = await upstreamFor(suite, { '*': faults.serverError(), '/plain': faults.json({ price: 1 }) });

  const configOf = (settings: object = {}, more: object = {}, endpoints: Endpoints = { plain: {} }) =>
    oneApi(upstream.url, endpoints, { settings: { metrics: { port: 0 }, ...settings }, ...more });
  const start = (t: TestContext, config: object, files: Readonly<Record<string, string>> = {}) =>
    serviceFor(t, { ...config }, { files });

  async function statusOf(service: RunningService) {
    const response = await fetch(metricsUrl(service).replace('/metrics', '/status'));
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json']);
    const { processes } = JSON.parse(await response.text());
    assert.equal(processes.length, 1);
    return processes[0];
  }

  async function ask(service: RunningService, name: string, status: number, headers: Record<string, string> = {}) {
    const response = await service.post(`api/${name}`, undefined, headers);
    await response.arrayBuffer();
    assert.equal(response.status, status);
    return response.headers.get('x-request-id');
  }

  it('says what runs, with which signer and engine, before anybody has asked', async (t) => {
    const service = await start(t, configOf({ state: { type: 'file', path: 'state' } }));
    const { service: about, ...parts } = await statusOf(service);
    const { inForceSince, startedAt, uptime, ...facts } = about;
    assert.deepEqual(facts, {
      ...{ config: join(service.folder, 'config.yaml'), generation: 1, lastReload: 'succeeded', phase: 'serving' },
      ...{ node: TEST_ADDRESS, version: packageVersion(), pid: process.pid },
    });
    for (const time of [inForceSince, startedAt]) assert.match(time, TIME);
    assert.ok(startedAt <= inForceSince && Number.isInteger(uptime));
    assert.deepEqual(parts, {
      ...{ engines: [{ name: 'file', state: 'up' }], signers: [local], breakers: [] },
      ...{ clients: { top: [], others: 0, unnamed: 0 }, errors: [] },
    });
    assert.equal((await fetch(`${service.url}/status`)).status, 404);
  });

  it('counts generations, and says that a reload failed', async (t) => {
    const service = await start(t, configOf());
    await ask(service, 'plain', 200);
    assert.equal((await reload(service, configOf({}, {}, { plain: {}, more: {} }))).done, true);
    assert.equal((await reload(service, configOf({ unknown: 1 }))).done, false);
    const { service: about, clients } = await statusOf(service);
    assert.deepEqual([about.generation, about.lastReload], [2, 'failed']);
    assert.deepEqual(clients, { top: [], others: 0, unnamed: 1 });
  });

  it('names those who ask most', async (t) => {
    const api = { auth: [{ type: 'apiKey', keys: KEYS }, { type: 'free' }] };
    const service = await start(t, configOf({}, { api }));
    for (const [i, { key }] of KEYS.entries())
      for (let count = 0; count <= i; count++) await ask(service, 'plain', 200, { 'X-Api-Key': key });
    await ask(service, 'plain', 200);
    const { clients, errors } = await statusOf(service);
    const top = KEYS.map(({ name }, i) => ({ name, requests: i + 1 })).toReversed();
    assert.deepEqual(clients, { top: top.slice(0, 10), others: 3, unnamed: 1 });
    assert.deepEqual(errors, []);
  });

  it('shows all parts but those that cannot be read, and logs no error of them', async (t) => {
    const source = `export default { name: 'shown', setup: ({ status }) => {
        status.show('thrown', () => { throw new Error('hunter22'); });
        status.show('big', () => 1n);
        status.show('none', () => undefined);
        status.show('well', () => ({ is: true }));
        return {};
      } };`;
    const service = await start(t, configOf({ plugins: [{ source: './p.mjs' }] }), { 'p.mjs': source });
    const { thrown, big, none, well, signers } = await statusOf(service);
    const unreadable = 'cannot be shown';
    assert.deepEqual(
      { thrown, big, none, well },
      { thrown: unreadable, big: unreadable, none: null, well: { is: true } },
    );
    assert.deepEqual(signers, [local]);
    assert.ok(!JSON.stringify(service.logs).includes('hunter22'));
  });

  it('counts a thousand clients by their names, and further ones together', async (t) => {
    const parts = new Map<string, () => unknown>();
    const shown = { show: (part: string, read: () => unknown) => void parts.set(part, read), read: () => ({}) };
    const harness = await testPlugin(status, { t, services: { config: { settings: { metrics: {} } }, status: shown } });
    for (let i = 0; i < 1002; i++) {
      const client = harness.request();
      clientName.set(client.exchange, `client-${i}`);
      await client.run('concluded', { outcome: { kind: 'abandoned' } });
    }
    const top = Array.from({ length: 10 }, (_, i) => ({ name: `client-${i}`, requests: 1 }));
    assert.deepEqual(parts.get('clients')?.(), { top, others: 992, unnamed: 0 });
  });

  it('has the latest kinds of failures, each once, and no fault of clients', async (t) => {
    const names = Array.from({ length: 22 }, (_, i) => `broken-${i}`);
    const endpoints = Object.fromEntries(names.map((name) => [name, {}]));
    const picky = { parameters: [{ name: 'q', required: true }] };
    const service = await start(t, configOf({}, {}, { ...endpoints, picky }));
    for (const name of names) await ask(service, name, 502);
    await ask(service, 'picky', 400);
    const first = await statusOf(service);
    const again = await ask(service, 'broken-2', 502);
    const { errors } = await statusOf(service);
    const kinds = errors.map(({ endpoint, count }: { endpoint: string; count: number }) => [endpoint, count]);
    const once = names.slice(3).map((name) => [`api/${name}`, 1]);
    assert.deepEqual(kinds, [['api/broken-2', 2], ...once.toReversed()]);
    const [{ firstAt, lastAt, ...latest }] = errors;
    assert.deepEqual(latest, {
      ...{ reason: 'status_5xx', endpoint: 'api/broken-2', stage: 'callApi', status: 502, count: 2 },
      requestId: again,
    });
    assert.equal(firstAt, first.errors.at(-1).firstAt);
    assert.match(firstAt, TIME);
    assert.ok(firstAt < lastAt);
  });

  it('says which upstream is asked no more for a while', async (t) => {
    const service = await start(t, configOf({}, { api: { breaker: { failures: 2 } } }, { plain: {}, broken: {} }));
    const name = `api ${new URL(upstream.url).host}`;
    await ask(service, 'plain', 200);
    assert.deepEqual((await statusOf(service)).breakers, [{ name, state: 'up' }]);
    for (const status of [502, 502, 503]) await ask(service, 'broken', status);
    assert.deepEqual((await statusOf(service)).breakers, [{ name, state: 'away' }]);
  });

  it('says which one a call may try', async (t) => {
    const api = { breaker: { failures: 1, openFor: 1 }, mirrors: ['http://127.0.0.1:1'] };
    const service = await start(t, configOf({}, { api }, { broken: {} }));
    const [name, mirror] = [`api ${new URL(upstream.url).host}`, { name: 'api 127.0.0.1:1', state: 'up' }];
    assert.deepEqual((await statusOf(service)).breakers, [{ name, state: 'up' }, mirror]);
    await ask(service, 'broken', 502);
    await setTimeout(5);
    const [own] = (await statusOf(service)).breakers;
    assert.deepEqual(own, { name, state: 'trying' });
  });

  it('says which isolated plugin has no process that takes calls', async (t) => {
    const source = `export default async ({ url }) => {
        const requireHelp = async () => void ((await fetch(url)).ok || process.exit(1));
        await requireHelp();
        return { name: 'fragile', hooks: { onBeforeApiCall: requireHelp } };
      };`;
    const helper = await upstreamFor(t, { '/': faults.json({}) });
    const plugins = [{ source: './p.mjs', isolate: true, timeout: 10_000, config: { url: helper.url } }];
    const service = await start(t, configOf({ plugins }), { 'p.mjs': source });
    await ask(service, 'plain', 200);
    assert.deepEqual((await statusOf(service)).breakers, [{ name: 'plugin "fragile"', state: 'up' }]);
    helper.on('/', faults.empty(503));
    type Found = { breakers: unknown; errors: { reason: string; endpoint: string; status: number }[] };
    const found = await eventually(async () => {
      // The first call ends one process, the next one the other.
      await ask(service, 'plain', 403);
      const status: Found = await statusOf(service);
      return JSON.stringify(status.breakers).includes('away') && status;
    });
    assert.deepEqual(found.breakers, [{ name: 'plugin "fragile"', state: 'away' }]);
    assert.deepEqual(
      found.errors.map(({ reason, endpoint, status }) => ({ reason, endpoint, status })),
      [{ reason: 'plugin', endpoint: 'api/plain', status: 403 }],
    );
  });
});
