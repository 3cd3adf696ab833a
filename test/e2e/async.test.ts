/** Async mode answers 202, and keeps one record a request, which is what sync mode would have answered. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { finished, type Submitted, submitted } from '../support/async.ts';
import { assertRefused, assertRouteHeaders, REQUEST_ID } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { acts, HOOKS, notes, puppetFile } from '../support/plugin-files.ts';
import { served, visit } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults, holding } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

const mode = 'async';
const encoding = { type: 'int256', path: '$.price' };

const endpoints = {
  encoded: { mode, encoding },
  raw: { mode },
  needs: { mode, path: '/encoded?n', parameters: [{ name: 'q', required: true }] },
  wild: { mode, path: '/encoded?w', encoding: { type: '*', path: '$.price' } },
  keyed: { mode, path: '/encoded?k', auth: { type: 'apiKey', keys: ['k'] } },
  down: { mode },
  none: { mode, path: '/encoded?m', encoding: { ...encoding, path: '$.none' } },
  empty: { mode, encoding },
  held: { mode, encoding },
};

describe('async mode', async () => {
  const { hold, release } = holding();
  const { upstream, service, post, refused } = await served(suite, endpoints, {
    answers: {
      '/encoded': faults.json({ price: -7 }),
      '/raw': faults.json({ b: 1, a: ['x'] }),
      '/down': faults.serverError(),
      '/empty': faults.empty(204),
      '/held': hold,
    },
    sources: { spy: puppetFile('spy') },
  });

  const poll = ({ pollUrl }: Pick<Submitted, 'pollUrl'>) => fetch(service.url + pollUrl);

  it('202 with requestId, status and pollUrl, kept by no cache', async () => {
    const response = await post('encoded');
    assertRouteHeaders(response);
    assert.equal(response.headers.get('content-type'), 'application/json');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    const body = await submitted(response);
    const { requestId } = body;
    assert.match(requestId, REQUEST_ID);
    assert.deepEqual(body, { requestId, status: 'pending', pollUrl: `/requests/${requestId}` });
    await finished(service, body);
  });

  it('a record in flight, then the signed fields of an encoded answer', async () => {
    const submission = await submitted(await post('held'));
    await upstream.untilRequested('/held');
    const response = await poll(submission);
    assert.deepEqual([response.status, await response.json()], [200, { ...submission, status: 'processing' }]);
    assert.equal(response.headers.get('cache-control'), 'no-store');
    assertRouteHeaders(response);
    release();
    const { requestId, status, pollUrl, ...signed } = await finished(service, submission);
    assert.deepEqual({ requestId, status, pollUrl }, { ...submission, status: 'complete' });
    assert.deepEqual(Object.keys(signed).sort(), ['data', 'endpointId', 'node', 'signature', 'timestamp']);
    assert.equal(signed.endpointId, service.ids['api/held']);
    const { data } = await verifyEncoded(signed, TEST_ADDRESS);
    assert.deepEqual([...AbiCoder.defaultAbiCoder().decode(['int256'], data)], [5n]);
  });

  it('the same complete record at every poll', async () => {
    const submission = await submitted(await post('raw'));
    const { requestId, status, pollUrl, ...signed } = await finished(service, submission);
    assert.deepEqual({ requestId, status, pollUrl }, { ...submission, status: 'complete' });
    assert.deepEqual((await verifyRaw(signed, TEST_ADDRESS)).rawData, { a: ['x'], b: 1 });
    const again = await poll(submission);
    assert.equal(again.headers.get('cache-control'), 'no-store');
    assert.deepEqual(await again.json(), { requestId, status, pollUrl, ...signed });
  });

  it('a failed record has the text that sync mode would have answered', async () => {
    const errors = {
      down: 'API call failed',
      none: 'No value found at path: $.none',
      empty: 'API returned no data to encode',
    };
    for (const [name, error] of Object.entries(errors)) {
      const submission = await submitted(await post(name));
      assert.deepEqual(await finished(service, submission), { ...submission, status: 'failed', error });
    }
  });

  it('what is refused before the cache is refused at once (pipeline rows 1 to 4)', async () => {
    const calls = upstream.requests.length;
    await refused(400, 'Missing required parameter(s): q', 'needs');
    await refused(400, 'Endpoint requires `_type` request parameter', 'wild');
    await refused(401, 'Missing X-Api-Key header', 'keyed');
    acts.set('spy onHttpRequest', () => ({ reject: true, message: 'no' }));
    await refused(403, 'no', 'encoded');
    acts.clear();
    assert.equal(upstream.requests.length, calls);
  });

  it('404 `Request not found` for an unknown id of any shape', async () => {
    for (const id of [`0x${'0'.repeat(64)}`, 'x', '__proto__', '%00', `0x${'a'.repeat(5000)}`]) {
      const response = await fetch(`${service.url}/requests/${id}`);
      assert.equal(response.headers.get('cache-control'), 'no-store');
      await assertRefused(response, 404, 'Request not found');
    }
    const wrong = await fetch(`${service.url}/requests/x`, { method: 'POST' });
    await assertRefused(wrong, 405, 'Method Not Allowed');
  });

  it('the requestId is a secret of its own: in no log, no plugin context and no X-Request-Id', async () => {
    notes.clear();
    for (const hook of HOOKS) {
      acts.set(`spy ${hook}`, (context) =>
        notes.add('context', JSON.stringify({ ...context, message: String(context.error) })),
      );
    }
    const ids: string[] = [];
    const headers: (string | null)[] = [];
    for (const name of ['encoded', 'raw', 'down']) {
      const response = await post(name);
      headers.push(response.headers.get('x-request-id'));
      const submission = await submitted(response);
      ids.push(submission.requestId);
      await finished(service, submission);
      const last = await poll(submission);
      await last.text();
      headers.push(last.headers.get('x-request-id'));
    }
    await notes.until('context', 3 + 3 + 2 + 1 + 2 + 1);
    acts.clear();
    const lines = JSON.stringify(service.logs);
    for (const id of ids) {
      assert.ok(!lines.includes(id) && !lines.includes(id.slice(2)), 'no log line');
      for (const context of notes.of('context')) assert.ok(!String(context).includes(id), 'no context');
      assert.ok(!headers.includes(id), 'no header');
    }
    assert.equal(new Set([...ids, ...headers]).size, ids.length + headers.length);
    assert.ok(lines.includes('GET /requests/:requestId 200'), 'polls are logged by their route');
  });

  it('a client that disconnects does not end the work', async () => {
    const before = upstream.requests.filter(({ path }) => path === '/held').length;
    notes.clear();
    acts.set('spy onResponseSent', () => notes.add('sent'));
    let leave = () => {};
    // The submission is on its way to the background: the client leaves without its 202.
    acts.set('spy onBeforeApiCall', () => leave());
    const client = visit(service, 'api/held');
    leave = client.leave;
    await client.outcome;
    await upstream.untilRequested('/held', before + 1);
    acts.delete('spy onBeforeApiCall');
    // A request of another client later, the upstream call is still there.
    await (await fetch(`${service.url}/health`)).text();
    assert.equal(upstream.open, 1);
    release();
    await notes.until('sent');
    acts.clear();
  });

  it('cached neither read nor written', async (t) => {
    const endpoints = { a: { mode }, s: { mode: 'stream' } };
    const answers = { '*': faults.json(1) };
    const cached = await served(t, endpoints, { answers, api: { cache: { maxAge: 60_000 } } });
    for (let i = 0; i < 2; i++) {
      await finished(cached.service, await submitted(await cached.post('a')));
      await (await cached.post('s')).text();
    }
    assert.equal(cached.upstream.requests.length, 4);
  });
});
