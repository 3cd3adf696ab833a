/** 4,096 requests may be under way: further ones are refused at once, and asked to come again. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertRefused, JSON_HEADERS } from '../support/http.ts';
import { scrape } from '../support/metrics.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';

it('the 4,097th request is refused, and probes are answered', async (t) => {
  const settings = { maxConcurrentApiCalls: 1, metrics: { port: 0 } };
  const more = { api: { timeout: 60_000 }, settings, server: { rateLimit: { max: 10_000 } } };
  const { service, at } = await served(t, { held: {} }, { answers: { '/held': faults.hang() }, ...more });
  const headers = { ...JSON_HEADERS, Connection: 'keep-alive', 'Content-Length': '0' };
  const request = `${requestHead(`POST ${new URL(at('held')).pathname}`, headers)}\r\n`;
  const clients = Array.from({ length: 256 }, () => openRaw(service.url));
  for (const client of clients) client.write(request.repeat(16));
  await retried(async () => assert.equal((await scrape(service)).value('upstream_slots_waiting'), 4095));
  const refused = await service.post('api/held');
  assert.equal(refused.headers.get('retry-after'), '1');
  await assertRefused(refused, 503, 'Server busy');
  assert.equal((await fetch(`${service.url}/ready`)).status, 200);
  for (const client of clients) client.destroy();
});
