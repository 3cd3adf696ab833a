/** Failures are found by metrics alone. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { assertFires, finding, type Seen, withoutPromtool } from '../support/alerts.ts';
import { queryOf } from '../support/incidents.ts';
import { type Scrape, scrape, scrapeAfter } from '../support/metrics.ts';
import { pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const ALERTS = [
  'RequestsFail',
  'PluginsFailRequests',
  'PluginDropsRequests',
  'PluginNearItsBudget',
  'UpstreamFails',
  'EventLoopBlocked',
];

describe('failures are found by metrics alone', { skip: withoutPromtool }, () => {
  async function serviceWithFaults(t: TestContext) {
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 1 }), '/broken': faults.serverError() });
    const hook = `onBeforeApiCall: ({ endpoint }) => { if (endpoint === 'dropped') throw new Error('no'); }`;
    const late = 'onAfterApiCall: ({ endpoint }) => endpoint === "late" ? sleep(850) : undefined';
    const { files, plugins } = pluginFiles({ picky: pluginFile('picky', hook), late: pluginFile('late', late) });
    const settings = { metrics: { port: 0 }, plugins };
    const config = oneApi(upstream.url, { plain: {}, dropped: {}, broken: {}, late: {} }, { settings });
    return await serviceFor(t, config, { files });
  }

  /** Asks for one endpoint again and again. @returns what an hour looked like. */
  async function hourOf(t: TestContext, endpoint: string, status: number) {
    const service = await serviceWithFaults(t);
    assert.equal((await service.post('api/plain')).status, 200);
    const seen: Scrape[] = [await scrapeAfter(service, 1)];
    for (let count = 2; count <= 6; count++) {
      assert.equal((await service.post(endpoint)).status, status);
      seen.push(await scrapeAfter(service, count));
    }
    return seen.map((each, i) => ({ scrape: each, minutes: i === 0 ? 45 : 3 }));
  }

  it('a plugin that drops requests, by an alert that counts its 403', async (t) => {
    const hour = await hourOf(t, 'api/dropped', 403);
    const failed = await queryOf('Requests for endpoints fail: which, and why?');
    const culprit = { plugin: 'picky', stage: 'onBeforeApiCall', outcome: 'failed' };
    const found = [
      finding(failed, { api: 'api', endpoint: 'dropped', reason: 'plugin' }),
      finding(await queryOf('`PluginsFailRequests` fires'), culprit),
    ];
    await assertFires(t, hour, ALERTS, ['PluginDropsRequests', 'PluginsFailRequests'], ...found);
  });

  it('a plugin that needs most of its budget', async (t) => {
    const service = await serviceWithFaults(t);
    const seen: Seen[] = [];
    for (let count = 1; count <= 4; count++) {
      // A busy machine may take the rest of the budget.
      assert.match(String((await service.post(count === 1 ? 'api/plain' : 'api/late')).status), /200|403/);
      seen.push({ scrape: await scrapeAfter(service, count), minutes: count === 1 ? 40 : 6 });
    }
    await assertFires(t, seen, ['PluginNearItsBudget']);
  });

  it('an upstream that fails', async (t) => {
    const hour = await hourOf(t, 'api/broken', 502);
    const cause = { api: 'api', endpoint: 'broken', reason: 'status_5xx' };
    const queries = ['Requests for endpoints fail: which, and why?', '`UpstreamFails` fires'].map(queryOf);
    const found = (await Promise.all(queries)).map((query) => finding(query, cause));
    await assertFires(t, hour, ALERTS, ['RequestsFail', 'UpstreamFails'], ...found);
  });

  it('a process that was blocked for 6 seconds, though two ask for its metrics', async (t) => {
    const service = await serviceWithFaults(t);
    const before = await scrape(service);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6000);
    await scrape(service);
    const blocked = [
      { scrape: before, minutes: 30 },
      { scrape: await scrape(service), minutes: 2 },
    ];
    await assertFires(t, blocked, ALERTS, ['EventLoopBlocked'], finding(await queryOf('`EventLoopBlocked` fires'), {}));
  });
});
