/** A call ends at its deadline, its size bound or its signal. */

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { hostOf } from '../../support/https.ts';
import { faults, jsonOfSize } from '../../support/upstream.ts';
import { eventOf } from '../../support/wait.ts';
import { ABORTED, fails, getFails, LATE, MIB, renewed, send, TOO_LARGE, text, UNCONNECTED, upstream } from './setup.ts';

renewed();

describe('the deadline', () => {
  const given = { timeout: 200 };

  it('cuts an endless row of interim answers', async () => {
    upstream.on('/', (req) => {
      const timer = setInterval(() => req.socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
      req.socket.on('close', () => clearInterval(timer));
    });
    await getFails('/', 'timeout', LATE, given);
    await upstream.untilAborted('/');
  });

  it('cuts a TLS handshake that never comes to an end, and its socket', async (t) => {
    const silent = createServer((socket) => socket.on('error', () => {}).resume());
    const connected = eventOf(silent, 'connection');
    const url = `https://${await hostOf(t, silent)}`;
    await fails(send('', { ...given, url: `${url}/?secret` }), 'timeout', `GET ${url} failed: ${UNCONNECTED}`);
    const [socket] = await connected;
    if (!socket.closed) await eventOf(socket, 'close');
  });

  it('leaves an answer alone that is slow but in time', async () => {
    upstream.on('/', faults.slow(50, faults.json('late')));
    assert.equal(await text('/'), '"late"');
  });

  it('may be as long as anybody likes', async () => {
    upstream.on('/', faults.slow(50, faults.json(1)));
    for (const timeout of [2 ** 31, Number.MAX_VALUE, Number.POSITIVE_INFINITY]) {
      assert.equal(await text('/', { timeout }), '1');
    }
  });
});

describe('the size bound', () => {
  it('puts a body of one-byte chunks together', async () => {
    upstream.on('/', faults.chunked(20_000, 1));
    assert.deepEqual((await send('/', { maxBytes: 20_000 })).body, jsonOfSize(20_000));
    await getFails('/', 'too-large', 'the answer is larger than 19999 bytes', { maxBytes: 19_999 });
  });

  it('refuses one byte more by the announced length alone', async () => {
    upstream.on('/', (_req, res) => {
      res.writeHead(200, { 'content-length': MIB + 1 }).flushHeaders();
    });
    await getFails('/', 'too-large', TOO_LARGE);
    await upstream.untilAborted('/');
  });

  it('can be zero', async () => {
    upstream.on('/empty', faults.empty(200));
    upstream.text('/one', '1');
    upstream.on('/coded', faults.coded('gzip', ''));
    assert.equal(await text('/empty', { maxBytes: 0 }), '');
    assert.equal(await text('/coded', { maxBytes: 0 }), '');
    await getFails('/one', 'too-large', 'the answer is larger than 0 bytes', { maxBytes: 0 });
  });
});

describe('the signal', () => {
  it('ends a call whose upstream hangs, and the upstream sees it', async () => {
    upstream.on('/', faults.hang());
    const controller = new AbortController();
    const call = send('/', { signal: controller.signal });
    await upstream.untilRequested('/');
    assert.equal(upstream.open, 1);
    controller.abort();
    await fails(call, 'aborted', `GET ${upstream.url} failed: ${ABORTED}`);
    await upstream.untilAborted('/');
    assert.equal(upstream.open, 0);
  });

  it('ends a call in the middle of its body', async () => {
    const controller = new AbortController();
    upstream.on('/', (_req, res) => {
      res.write('{"a":', () => setTimeout(() => controller.abort(), 20));
    });
    await getFails('/', 'aborted', ABORTED, { signal: controller.signal });
    await upstream.untilAborted('/');
  });

  it('ends a call that has only begun to connect', async () => {
    upstream.json('/', 1);
    const controller = new AbortController();
    const call = send('/', { signal: controller.signal });
    controller.abort();
    await fails(call, 'aborted', `GET ${upstream.url} failed: ${ABORTED}`);
    assert.equal(upstream.requests.length, 0);
    await upstream.until(() => upstream.sockets === 0);
  });

  it('that has aborted before stops the call before anything is sent', async () => {
    await getFails('/', 'aborted', ABORTED, { signal: AbortSignal.abort() });
    assert.equal(upstream.connections, 0);
  });

  it('has no effect on a finished call, and nothing of the call stays on it', async () => {
    upstream.json('/', 1);
    const controller = new AbortController();
    const { signal } = controller;
    assert.equal(await text('/', { signal }), '1');
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
    controller.abort();
    assert.equal(await text('/'), '1');
    assert.equal(upstream.connections, 1);
  });

  it('of one call does not touch another', async () => {
    upstream.on('/hang', faults.hang());
    upstream.on('/slow', faults.slow(100, faults.json(1)));
    const controller = new AbortController();
    const other = text('/slow');
    const call = send('/hang', { signal: controller.signal });
    await upstream.untilRequested('/hang');
    controller.abort();
    await assert.rejects(call, { kind: 'aborted' });
    assert.equal(await other, '1');
  });
});
