/** A metrics sink that throws costs no slot and no answer. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const EXPORTER = `
const boom = () => { throw new Error('the exporter is down'); };
export default {
  name: 'exporter',
  setup: ({ meters }) => ({ start: () => meters.connect({ counter: () => boom, histogram: () => boom, gauge: boom }) }),
};`;

it('a metrics sink that throws costs no slot and no answer, and is named once for each instrument', async (t) => {
  const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }) });
  const { files, plugins } = pluginFiles({ exporter: EXPORTER });
  const encoding = { type: 'uint256', path: '$.price' };
  const parameters = [{ name: 'q' }];
  const endpoints = { plain: { encoding, parameters }, cached: { encoding, parameters, cache: { maxAge: 60_000 } } };
  const settings = { plugins, maxConcurrentApiCalls: 2 };
  const service = await serviceFor(t, oneApi(upstream.url, endpoints, { api: { timeout: 2000 }, settings }), {
    files,
  });
  for (let q = 0; q < 4; q++) {
    await verifyEncoded(await service.post('api/plain', { q }), service.signer.address);
    const asked = [1, 2].map(() => service.post('api/cached', { q }));
    for (const answer of asked) await verifyEncoded(await answer, service.signer.address);
  }
  assert.equal(upstream.requests.length, 8);
  const told = service.logs.filter(({ message }) => message === 'the metrics sink failed: measurements are lost');
  const names = told.map(({ level, fields }) => [level, fields?.instrument]);
  assert.deepEqual(names.toSorted(), [
    ['error', 'async_records'],
    ['error', 'cache_bytes'],
    ['error', 'cache_entries'],
    ['error', 'cache_lookups_total'],
    ['error', 'config_last_reload_success_timestamp_seconds'],
    ['error', 'config_last_reload_successful'],
    ['error', 'upstream_call_seconds'],
    ['error', 'upstream_certificate_ends_seconds'],
    ['error', 'upstream_slots_in_use'],
    ['error', 'upstream_slots_waiting'],
  ]);
  for (const { fields } of told) assert.match(String(fields?.error), /^Error: the exporter is down\n/);
});
