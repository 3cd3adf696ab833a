/** 4,096 requests may be under way: further ones are refused at once, and asked to come again. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { notes } from '../support/plugin-files.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { holding } from '../support/upstream.ts';

/** Its route answers when it stops. */
const held = `
let answer;
const answered = new Promise((resolve) => { answer = resolve; });
const handle = () => { globalThis.testNote('held'); return answered; };
const routes = [{ method: 'GET', path: '/held', admit: true, handle }];
export default { name: 'held', setup: () => ({ routes, stop: () => answer({ status: 200, body: '{}' }) }) };
`;

it('the 4,097th request is refused, and probes are answered', async (t) => {
  const upstream = holding();
  const plugins = { sources: { held }, entries: { held: { timeout: 60_000 } } };
  const answers = { '/e': upstream.hold };
  const { service } = await served(t, { e: {} }, { answers, api: { timeout: 60_000 }, ...plugins });
  const first = service.post('api/e');
  await upstream.arrived(1);
  const request = `${requestHead('GET /held', { Connection: 'keep-alive' })}\r\n`;
  const clients = Array.from({ length: 256 }, () => openRaw(service.url));
  for (const client of clients) client.write(request.repeat(client === clients[0] ? 15 : 16));
  await notes.until('held', 4095);
  const refused = await service.post('api/e');
  assert.equal(refused.headers.get('retry-after'), '1');
  await assertRefused(refused, 503, 'Server busy');
  assert.equal((await fetch(`${service.url}/ready`)).status, 200);
  for (const client of clients) client.destroy();
  upstream.release();
  assert.equal((await first).status, 200);
});
