/** Requests go through koa, its router, koa-body and tapable: their own files run, which precise coverage shows. */
import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

/** Files of packages, of which a function runs in each such request and in none of the others. */
const RUN = {
  koa: 'koa/lib/application.js',
  router: '@koa/router/dist/index.mjs',
  body: 'koa-body/dist/esm/index.js',
  hooks: 'tapable/lib/HookMap.js',
};

/** Which of them run meanwhile. */
async function runBy(session: Session, work: () => Promise<unknown>): Promise<string[]> {
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const files = result.flatMap(({ url, functions }) =>
    functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)) ? [url] : [],
  );
  return Object.keys(RUN).filter((name) => files.some((file) => file.endsWith(`/${RUN[name as keyof typeof RUN]}`)));
}

describe('the libraries that a warm request runs', async () => {
  const { service, at } = await served(suite, { e: {} }, { answers: { '/e': faults.json({ price: 7 }) } });
  const url = at('e');
  const headers = { 'Content-Type': 'application/json' };
  const post = async (target: string, body: string | ReadableStream) => {
    const response = await fetch(target, { method: 'POST', headers, body, duplex: 'half' });
    await response.arrayBuffer();
    return response.status;
  };
  const chunked = () => new Blob(['{"parameters":{}}']).stream();
  const requests = [() => post(url, '{}'), () => post(url, chunked()), () => post(`${url}?a`, '{}')];
  for (const request of [...requests, ...requests]) assert.equal(await request(), 200);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  suite.after(async () => session.disconnect());

  it('are koa and tapable, where the path is plain and the length is announced', async () => {
    assert.deepEqual(await runBy(session, () => post(url, '{}')), ['koa', 'hooks']);
  });

  it('are koa-body, too, where the body comes in chunks', async () => {
    assert.deepEqual(await runBy(session, () => post(url, chunked())), ['koa', 'body', 'hooks']);
  });

  it('are the router, too, where the path is anything else', async () => {
    assert.deepEqual(await runBy(session, () => post(`${url}?a`, '{}')), ['koa', 'router', 'hooks']);
    assert.deepEqual(await runBy(session, () => fetch(`${service.url}/health`)), ['koa', 'router', 'hooks']);
    assert.deepEqual(await runBy(session, () => fetch(`${service.url}/nowhere`)), ['koa', 'router', 'hooks']);
  });
});
