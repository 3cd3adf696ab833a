import assert from 'node:assert/strict';
import { beforeEach } from 'node:test';
import { assertRefused } from './http.ts';
import { suite } from './lifetime.ts';
import { served } from './served.ts';
import { faults, type RecordedRequest } from './upstream.ts';

type Served = Parameters<typeof served>;

/** A service of one API whose upstream answers everything with `{value: 7}`, for the suite, and how its tests ask it. */
export async function askableService(endpoints: Served[1], more: Served[2] = {}) {
  const { upstream, service } = await served(suite, endpoints, {
    answers: { '*': faults.json({ value: 7 }) },
    ...more,
  });
  beforeEach(() => {
    upstream.requests.length = 0;
  });
  return {
    upstream,
    service,
    /** The one request that the upstream has got for an answer. */
    async ask(endpoint: string, parameters?: unknown): Promise<RecordedRequest> {
      const calls = upstream.requests.length;
      const response = await service.post(`api/${endpoint}`, parameters);
      assert.equal(response.status, 200, `${JSON.stringify(parameters)}: ${await response.text()}`);
      assert.equal(upstream.requests.length, calls + 1);
      return upstream.requests.at(-1) ?? assert.fail('the upstream was not asked');
    },
    /** Asserts a 400 before any call. */
    async refuse(endpoint: string, parameters: unknown, error: string): Promise<void> {
      const calls = upstream.requests.length;
      await assertRefused(await service.post(`api/${endpoint}`, parameters), 400, error);
      assert.equal(upstream.requests.length, calls, 'before any call');
    },
  };
}
