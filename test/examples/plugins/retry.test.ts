import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { assertRefused, endpointUrl, eventually, JSON_HEADERS } from '../../support/http.ts';
import { inTurn } from '../../support/in-turn.ts';
import { type RunningService, startTestService } from '../../support/service.ts';
import { faults, startUpstream, type Upstream } from '../../support/upstream.ts';

describe('retry', () => {
  let upstream: Upstream;
  let service: RunningService;
  const start = (config?: object) => {
    const endpoints = { e: {}, once: { retry: 1 } };
    const api = { retry: 3, timeout: 1000, maxConcurrentCalls: 1 };
    return startTestService(
      oneApi(upstream.url, endpoints, { api, settings: { plugins: [example('retry', config)] } }),
    );
  };
  const calls = () => upstream.requests.splice(0).length;

  before(async () => {
    upstream = await startUpstream();
    service = await start({ backoff: '1ms' });
  });
  after(async () => {
    await service.stop();
    await upstream.close();
  });

  it('asks again after failures that may pass', async () => {
    const passing = [faults.reset(), faults.hang(), ...[408, 425, 429, 500, 502, 503, 504].map(faults.empty)];
    for (const fault of passing) {
      upstream.on('/e', inTurn(fault, fault, faults.json(7)));
      const response = await service.post('api/e');
      const text = await response.text();
      assert.equal(JSON.parse(text).rawData, 7, text);
      assert.equal(calls(), 3);
    }
  });

  it('gives up with what the last call came to', async () => {
    upstream.on('/e', inTurn(faults.hang(), faults.empty(503), faults.empty(500)));
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
    assert.equal(calls(), 3);
    const line = service.logs.findLast(({ message }) => message === 'API call failed');
    assert.equal(line?.fields.reason, 'upstream status 500');
  });

  it('does not ask again what would fail again', async () => {
    for (const fault of [faults.empty(404), faults.empty(401), faults.invalidJson(), faults.redirect('/f')]) {
      upstream.on('/e', fault);
      await assertRefused(await service.post('api/e'), 502, 'API call failed');
      assert.equal(calls(), 1);
    }
  });

  it('endpoints may have a number of their own', async () => {
    upstream.on('/once', faults.empty(503));
    await assertRefused(await service.post('api/once'), 502, 'API call failed');
    assert.equal(calls(), 1);
  });

  it('a client that leaves ends the wait: a stop has nobody to wait for', async () => {
    const patient = await start({ backoff: '1h' });
    upstream.on('/e', faults.empty(503));
    const leaving = new AbortController();
    const asked = fetch(endpointUrl(patient, 'api/e'), {
      ...{ method: 'POST', headers: JSON_HEADERS, body: '{}' },
      signal: leaving.signal,
    });
    await eventually(() => upstream.requests[0], 'a call');
    await upstream.untilIdle();
    patient.logs.splice(0);
    leaving.abort();
    await assert.rejects(asked, { name: 'AbortError' });
    await patient.stop();
    assert.equal(calls(), 1);
    assert.deepEqual(
      patient.logs.filter(({ level }) => level !== 'info').map(({ message }) => message),
      [],
    );
  });
});
