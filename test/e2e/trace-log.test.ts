/** The trace of a client reaches the line of its request. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const OTHER = '0af7651916cd43dd8448eb211c80319c';
const parentOf = (trace: string) => `00-${trace}-00f067aa0ba902b7-01`;

const encoding = { type: 'uint256', path: '$.value' };
const endpoints = {
  cached: { encoding, cache: { maxAge: 600_000 } },
  later: { encoding, mode: 'async' },
  locked: { encoding, auth: { type: 'apiKey', keys: [{ name: 'me', key: 'secret-0001' }] } },
};

describe('the trace of a client reaches the line of its request', async () => {
  const answers = { '*': faults.json({ value: 7 }) };
  const { service } = await served(suite, endpoints, { answers, env: { LOG_FORMAT: 'json' } });

  /** The two ids in the line of a request, and its status. */
  async function idsOf(response: Response): Promise<unknown[]> {
    await response.text();
    const requestId = response.headers.get('x-request-id');
    const line = () =>
      service.logs.find(({ message, fields }) => message === 'request' && fields.requestId === requestId);
    const { status, traceId, clientRequestId } = (await eventually(line, 'the line of the request')).fields;
    return [status, traceId, clientRequestId];
  }

  it('has nothing of a client that says nothing, and of what is invalid', async () => {
    assert.deepEqual(await idsOf(await service.post('api/cached')), [200, undefined, undefined]);
    const headers = { traceparent: `ff-${TRACE}-00f067aa0ba902b7-01`, 'X-Request-Id': 'no such\tid' };
    assert.deepEqual(await idsOf(await service.post('api/cached', {}, headers)), [200, undefined, undefined]);
  });

  it('is the own one of each request, also where the answer is from the cache or one call is shared', async () => {
    const ask = (trace: string, id: string) =>
      service.post('api/cached', {}, { traceparent: parentOf(trace), 'X-Request-Id': id });
    const responses = await Promise.all([ask(TRACE, 'first'), ask(OTHER, 'second')]);
    assert.deepEqual(await Promise.all(responses.map(idsOf)), [
      [200, TRACE, 'first'],
      [200, OTHER, 'second'],
    ]);
    assert.deepEqual(await idsOf(await ask(OTHER, 'third')), [200, OTHER, 'third']);
  });

  for (const [what, path, status] of [
    ['that is refused', 'api/locked', 401],
    ['whose answer comes later', 'api/later', 202],
  ] as const)
    it(`is there for a request ${what}`, async () => {
      const headers = { traceparent: parentOf(TRACE), 'X-Request-Id': 'mine' };
      assert.deepEqual(await idsOf(await service.post(path, {}, headers)), [status, TRACE, 'mine']);
    });

  it('is there for what no endpoint serves', async () => {
    const headers = { traceparent: parentOf(TRACE), 'X-Request-Id': 'mine' };
    assert.deepEqual(await idsOf(await fetch(`${service.url}/nothing`, { headers })), [404, TRACE, 'mine']);
  });
});
