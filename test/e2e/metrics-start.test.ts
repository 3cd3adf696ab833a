/** A service that has just started shows each metric at its beginning. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { packageVersion } from '../../service/surroundings.ts';
import { scrape } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { oneApi, serviceFor } from '../support/service.ts';

const configOf = (endpoints: Parameters<typeof oneApi>[1]) =>
  oneApi('http://127.0.0.1:9', endpoints, { settings: { metrics: { port: 0 } } });

describe('the metrics of a service that has just started', { concurrency: 4 }, () => {
  it('say which versions run', async (t) => {
    const service = await serviceFor(t, configOf({ plain: {} }));
    const found = await scrape(service);
    assert.equal(found.value('build_info', { version: packageVersion(), node: process.version }), 1);
  });

  it('have the counters of its endpoints at 0', async (t) => {
    const service = await serviceFor(t, configOf({ plain: {}, later: { mode: 'async' } }));
    const route = '/endpoints/:endpointId';
    const expected = {
      requests: [
        ...['200', '500', '502', '503'].map((status) => `${route} api plain sync ${status}`),
        ...['202', '500', '502', '503'].map((status) => `${route} api later async ${status}`),
      ],
      outcomes: ['plain sync', 'later async'].flatMap((endpoint) =>
        ['signed', 'refused', 'abandoned'].map((outcome) => `api ${endpoint} ${outcome}`),
      ),
    };
    const zero = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 0]));
    const found = await scrape(service);
    assert.deepEqual(found.table('requests_total'), zero(expected.requests));
    assert.deepEqual(found.table('outcomes_total'), zero(expected.outcomes));
    // Those of endpoints that a reload brings, too.
    await reload(service, configOf({ plain: {}, more: {} }));
    assert.equal((await scrape(service)).table('outcomes_total')['api more sync signed'], 0);
  });

  it('say how the last reload went, and since when the config is in force', async (t) => {
    const service = await serviceFor(t, configOf({ plain: {} }));
    const read = async () => {
      const found = await scrape(service);
      const since = found.value('config_last_reload_success_timestamp_seconds') ?? Number.NaN;
      return { successful: found.value('config_last_reload_successful'), since };
    };
    const first = await read();
    assert.equal(first.successful, 1);
    assert.ok(Math.abs(first.since - Date.now() / 1000) < 120, String(first.since));
    assert.equal((await reload(service, {})).done, false);
    assert.deepEqual(await read(), { successful: 0, since: first.since });
    assert.equal((await reload(service, configOf({ plain: {} }))).done, true);
    const last = await read();
    assert.equal(last.successful, 1);
    assert.ok(last.since > first.since);
  });
});
