/** webhook tells another service of answers. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { example } from '../../support/examples.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, type Handler, upstreamFor } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';

const hang = faults.hang();

async function start(t: TestContext, receive: Handler, config: object = {}) {
  const receiver = await upstreamFor(t, { '/s3cret': receive });
  const upstream = await upstreamFor(t, { '/e': faults.json({ price: 7 }), '/broken': faults.serverError() });
  const url = `${receiver.url.replace('//', '//me:hush@')}/s3cret?token=t0ken`;
  const plugins = [example('webhook', { url, ...config })];
  const service = await serviceFor(t, oneApi(upstream.url, { e: {}, broken: {} }, { settings: { plugins } }));
  const complaints = () => service.logs.filter(({ level }) => level === 'warn');
  return { receiver, service, stop: service.stop, complaints };
}

describe('webhook', () => {
  it('posts each signed answer, and nothing else', async (t) => {
    const { receiver, service, stop } = await start(t, faults.empty(204));
    assert.equal((await service.post('api/broken')).status, 502);
    const response = await service.post('api/e');
    const answer = await response.json();
    await stop();
    const [request, ...rest] = receiver.requests;
    assert.deepEqual(rest, []);
    assert.deepEqual([request?.method, request?.path], ['POST', '/s3cret?token=t0ken']);
    assert.deepEqual(
      [request?.headers.authorization, request?.headers['content-type']],
      [`Basic ${btoa('me:hush')}`, 'application/json'],
    );
    const requestId = response.headers.get('x-request-id');
    assert.deepEqual(JSON.parse(request?.body ?? ''), { requestId, endpoint: 'api/e', answer });
  });

  it('no client waits for it, a stop does', async (t) => {
    let release = () => {};
    const { receiver, service, stop, complaints } = await start(t, (_, res) => {
      release = () => res.writeHead(200).end();
    });
    assert.equal((await service.post('api/e')).status, 200);
    await receiver.untilRequested('/s3cret');
    const stopped = stop();
    await eventually(async () => !(await fetch(service.url).catch(() => undefined)), 'the port to be closed');
    release();
    await stopped;
    // A stop that did not wait would have ended the call.
    assert.deepEqual(complaints(), []);
  });

  it('a receiver that fails costs a line in the log, without the secrets of its URL', async (t) => {
    for (const [fault, error] of [
      [faults.serverError(), 'Error: status 500'],
      [faults.reset(), 'RequestFailure: POST '],
      [hang, 'RequestFailure: POST '],
    ] as const) {
      const { service, stop, complaints } = await start(t, fault, fault === hang ? { timeout: 200 } : {});
      const response = await service.post('api/e');
      await response.text();
      await stop();
      const [line, ...rest] = complaints();
      assert.deepEqual(rest, []);
      assert.match(line?.message ?? '', /an answer did not reach the webhook$/);
      assert.equal(String(line?.fields.error).slice(0, error.length), error);
      assert.equal(line?.fields.requestId, response.headers.get('x-request-id'));
      assert.doesNotMatch(JSON.stringify(service.logs), /s3cret|hush|t0ken/);
    }
  });

  it('lets no more wait than it may', async (t) => {
    const { receiver, service, complaints } = await start(t, faults.hang(), { waiting: 2, timeout: 60_000 });
    for (let i = 0; i < 3; i++) await (await service.post('api/e')).text();
    const [line] = await eventually(() => (complaints().length > 0 ? complaints() : undefined), 'a complaint');
    assert.match(line?.message ?? '', /too many answers wait for the webhook: one is lost$/);
    await receiver.untilRequested('/s3cret', 2);
    assert.equal(receiver.requests.length, 2);
    await receiver.close();
  });
});
