/** Connections are kept, bounded and closed. */

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { faults } from '../../support/upstream.ts';
import { client, fails, getFails, renewed, send, text, UNCONNECTED, upstream, useClient } from './setup.ts';

renewed();

describe('the connections', () => {
  it('carry 200 calls at once, each with its own answer', async () => {
    upstream.on('*', (_req, res, { path }) => void res.end(path));
    const paths = Array.from({ length: 200 }, (_, index) => `/${index}?n=${index}`);
    assert.deepEqual(await Promise.all(paths.map((path) => text(path))), paths);
    assert.ok(upstream.connections <= 128, `${upstream.connections} connections`);
  });

  it('leave no timer behind', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    upstream.json('/', 1);
    upstream.on('/reset', faults.reset());
    upstream.on('/gzip', faults.coded('gzip', '1'));
    const controller = new AbortController();
    await Promise.all([send('/'), send('/gzip'), assert.rejects(send('/reset'))]);
    const aborted = assert.rejects(send('/', { signal: controller.signal }));
    controller.abort();
    await aborted;
    assert.equal(timers(), before);
  });

  it('are kept for the next call', async () => {
    upstream.json('/', 1);
    for (let count = 0; count < 5; count += 1) await send('/');
    assert.equal(upstream.connections, 1);
  });

  it('are kept after an error status, a 204 and a coded body', async () => {
    upstream.on('/500', faults.serverError());
    upstream.on('/204', faults.empty(204));
    upstream.on('/gzip', faults.coded('gzip', '1'));
    for (const path of ['/500', '/204', '/gzip', '/404']) await send(path);
    assert.equal(upstream.connections, 1);
  });

  it('are not used for what must not be repeated if they were closed in the turn in which the call begins', async () => {
    const sockets: Socket[] = [];
    upstream.on('/', (req, res) => {
      sockets.push(req.socket);
      res.end('1');
    });
    for (const method of Array(20).fill(['POST', 'PUT', 'PATCH', 'DELETE']).flat()) {
      await send('/', { method });
      sockets.at(-1)?.destroy();
      assert.equal(await text('/', { method }), '1');
    }
  });

  it('are no more than allowed: further calls wait for their turn in order', async () => {
    await useClient({ connections: 2 });
    upstream.on('*', faults.slow(20, faults.json(1)));
    const paths = ['/0', '/1', '/2', '/3', '/4', '/5'];
    assert.deepEqual(await Promise.all(paths.map((path) => text(path))), ['1', '1', '1', '1', '1', '1']);
    assert.deepEqual(upstream.requests.map(({ path }) => path).sort(), paths);
    assert.equal(upstream.connections, 2);
  });

  it('count the wait for one against the deadline, and a call that gave up is never sent', async () => {
    await useClient({ connections: 1 });
    upstream.on('/hang', faults.hang());
    upstream.json('/', 1);
    const controller = new AbortController();
    const first = send('/hang', { signal: controller.signal });
    await upstream.untilRequested('/hang');
    await getFails('/late', 'timeout', UNCONNECTED, { timeout: 200 });
    const next = text('/');
    controller.abort();
    await assert.rejects(first, { kind: 'aborted' });
    assert.equal(await next, '1');
    const paths = upstream.requests.map(({ path }) => path);
    assert.deepEqual(paths, ['/hang', '/']);
  });

  it('come back after every failure', async () => {
    await useClient({ connections: 1 });
    upstream.on('/hang', faults.hang());
    upstream.on('/reset', faults.reset());
    upstream.on('/large', faults.endless());
    upstream.on('/zstd', faults.codedBytes('zstd', Buffer.of(1)));
    upstream.on('/bad', faults.codedBytes('gzip', Buffer.of(1)));
    upstream.json('/', 1);
    await assert.rejects(send('/hang', { timeout: 50 }), { kind: 'timeout' });
    await assert.rejects(send('/reset'), { kind: 'network' });
    await assert.rejects(send('/large'), { kind: 'too-large' });
    await assert.rejects(send('/zstd'), { kind: 'encoding' });
    await assert.rejects(send('/bad'), { kind: 'encoding' });
    await assert.rejects(send('/', { headers: { 'x y': 'z' } }), { kind: 'network' });
    assert.equal(await text('/'), '1');
    await upstream.untilIdle();
  });

  it('survive many invalid calls in the queue', async () => {
    await useClient({ connections: 1 });
    upstream.on('/hang', faults.hang());
    const controller = new AbortController();
    const first = send('/hang', { signal: controller.signal });
    await upstream.untilRequested('/hang');
    const calls = Array.from({ length: 2000 }, () =>
      assert.rejects(send('/', { method: 'NO GOOD' }), { kind: 'network' }),
    );
    controller.abort();
    await assert.rejects(first, { kind: 'aborted' });
    await Promise.all(calls);
    upstream.json('/', 1);
    assert.equal(await text('/'), '1');
  });

  it('closed by the server after an answer are replaced', async () => {
    upstream.on('/', (req, res) => {
      res.on('finish', () => req.socket.end()).end('1');
    });
    for (let count = 1; count <= 3; count += 1) {
      assert.equal(await text('/'), '1');
      await upstream.until(() => upstream.sockets === 0);
      assert.equal(upstream.connections, count);
    }
  });

  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    it(`that turn out to be closed are replaced once for ${method}`, async () => {
      upstream.on('*', faults.onReuse(faults.empty(200), faults.reset()));
      await send('/first');
      assert.equal((await send('/', { method })).status, 200);
      const asked = upstream.requests.map((request) => `${request.method} ${request.path}`);
      assert.deepEqual(asked, ['GET /first', `${method} /`, `${method} /`]);
      assert.equal(upstream.connections, 2);
    });
  }

  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    it(`that turn out to be closed fail a ${method}`, async () => {
      upstream.json('/first', 1);
      await send('/first');
      upstream.on('/', faults.reset());
      await assert.rejects(send('/', { method, body: '{}' }), { kind: 'network' });
      assert.equal(upstream.requests.length, 2);
    });
  }

  it('that are closed again, when new, fail the call', async () => {
    upstream.json('/first', 1);
    await send('/first');
    upstream.on('/', faults.reset());
    await assert.rejects(send('/'), { kind: 'network' });
    assert.equal(upstream.requests.length, 3);
  });
});

describe('close', () => {
  it('ends calls under way and queued, closes idle sockets and refuses later calls', async () => {
    await useClient({ connections: 2 });
    upstream.json('/', 1);
    upstream.on('/hang', faults.hang());
    await Promise.all([send('/'), send('/')]);
    const running = send('/hang');
    await upstream.untilRequested('/hang');
    const calls = [running, send('/hang'), send('/hang'), send('/hang')].map((call) =>
      fails(call, 'aborted', `GET ${upstream.url} failed: the client is closed`),
    );
    await client.close();
    await Promise.all(calls);
    await upstream.until(() => upstream.sockets === 0);
    assert.equal(upstream.connections, 2);
    await getFails('/', 'aborted', 'the client is closed');
    await client.close();
  });
});
