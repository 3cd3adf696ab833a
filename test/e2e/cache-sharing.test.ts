import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/http.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

describe('clients that miss the cache at the same time share one upstream call', () => {
  let upstream: Upstream;
  let service: RunningService;
  /** Answers the calls that have arrived and wait, in their order. */
  const held: Array<(status: number) => void> = [];

  before(async () => {
    upstream = await startUpstream({
      '/price': (_, response) => {
        held.push((status) => response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"price": 7}'));
      },
    });
    const encoding = { type: 'uint256', path: '$.price' };
    const parameters = [{ name: 'q' }];
    service = await startTestService({
      apis: [
        {
          name: 'x',
          url: upstream.url,
          auth: { type: 'free' },
          endpoints: [
            { name: 'kept', path: '/price', encoding, parameters, cache: { maxAge: 60_000 } },
            { name: 'brief', path: '/price?b', encoding, parameters, cache: { maxAge: 1 } },
          ],
        },
      ],
    });
  });
  after(async () => {
    await service.stop();
    await upstream.close();
  });
  beforeEach(() => {
    held.length = 0;
    upstream.requests.length = 0;
  });

  const calls = (count: number) => eventually(() => held.length >= count || undefined, `${count} calls`);
  /** Resolves when the service has taken in as many requests as were sent by now. */
  const settled = () => fetch(`${service.url}/health`).then((response) => response.text());

  it('and get the same answer', async () => {
    const answers = Array.from({ length: 20 }, () => service.post('x/kept', { q: 'same' }));
    await calls(1);
    await settled();
    held[0]?.(200);
    const texts = await Promise.all(answers.map(async (answer) => (await answer).text()));
    assert.equal(new Set(texts).size, 1);
    await verifyEncoded(JSON.parse(texts[0] ?? ''), service.signer.address);
    assert.equal(upstream.requests.length, 1);
  });

  it('also when the answer is not kept as long as they waited', async () => {
    const answers = Array.from({ length: 5 }, () => service.post('x/brief', { q: 'same' }));
    await calls(1);
    await settled();
    held[0]?.(200);
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
    assert.deepEqual(statuses, Array(5).fill(200));
    assert.equal(upstream.requests.length, 1);
  });

  it('but not with clients that ask something else', async () => {
    const answers = [service.post('x/kept', { q: 'one' }), service.post('x/kept', { q: 'other' })];
    await calls(2);
    for (const answer of held) answer(200);
    await Promise.all(answers.map(async (answer) => verifyEncoded(await answer, service.signer.address)));
  });

  it('share no failure: the next of them asks', async () => {
    const answers = Array.from({ length: 4 }, () => service.post('x/kept', { q: 'failing' }));
    await calls(1);
    await settled();
    held[0]?.(500);
    await calls(2);
    held[1]?.(200);
    const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
    assert.deepEqual(statuses.toSorted(), [200, 200, 200, 502]);
    assert.equal(upstream.requests.length, 2);
  });

  it('wait for nobody who left: the next of them asks', async () => {
    const leader = new AbortController();
    const ask = (signal: AbortSignal | null) =>
      fetch(`${service.url}/endpoints/${service.ids['x/kept']}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"parameters":{"q":"left"}}',
        signal,
      });
    const left = ask(leader.signal).catch(() => undefined);
    await calls(1);
    const answers = [ask(null), ask(null)];
    await settled();
    leader.abort();
    await left;
    await calls(2);
    held[1]?.(200);
    for (const answer of answers) await verifyEncoded(await answer, service.signer.address);
    assert.equal(upstream.requests.length, 2);
  });

  it('and may leave while they wait', async () => {
    const leader = service.post('x/kept', { q: 'patient' });
    await calls(1);
    const impatient = new AbortController();
    const left = fetch(`${service.url}/endpoints/${service.ids['x/kept']}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"parameters":{"q":"patient"}}',
      signal: impatient.signal,
    }).catch(() => 'left');
    await settled();
    impatient.abort();
    assert.equal(await left, 'left');
    held[0]?.(200);
    await verifyEncoded(await leader, service.signer.address);
    assert.equal(upstream.requests.length, 1);
  });
});
