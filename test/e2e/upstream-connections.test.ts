/** Connections that upstreams close cost no request that may be repeated. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { acts, puppetFile } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

describe('connections that upstreams close', async () => {
  /** Of the requests that have arrived, in their order. */
  const sockets: Socket[] = [];

  const noting: Handler = (req, res, recorded) => {
    sockets.push(req.socket);
    return faults.json({ value: 1 })(req, res, recorded);
  };
  const endpoints = Object.fromEntries(METHODS.map((method) => [method, { method }]));
  const { upstream, service } = await served(suite, endpoints, {
    answers: { '*': noting },
    sources: { puppet: puppetFile('puppet', ['onBeforeApiCall']) },
  });

  beforeEach(() => {
    acts.clear();
    sockets.length = 0;
    upstream.requests.length = 0;
  });

  for (const method of METHODS) {
    it(`${method}: a request that was not sent, because its connection was reset first, is sent on another`, async () => {
      await verifyRaw(await service.post(`api/${method}`), service.signer.address);
      // In the turn in which the call begins: the client cannot know yet.
      acts.set('puppet onBeforeApiCall', () => {
        acts.clear();
        sockets[0]?.resetAndDestroy();
      });
      await verifyRaw(await service.post(`api/${method}`), service.signer.address);
      assert.equal(upstream.requests.length, 2);
    });
  }

  it('POST: one that may have been read is not sent again', async (t) => {
    await verifyRaw(await service.post('api/POST'), service.signer.address);
    upstream.on('/POST', faults.reset());
    t.after(() => upstream.on('/POST', faults.json({ value: 1 })));
    await assertRefused(await service.post('api/POST'), 502, 'API call failed');
    assert.equal(upstream.requests.length, 2);
  });
});

it('a POST does not go out on a connection that has been idle for as long as the upstream keeps one', async (t) => {
  /** Milliseconds until the upstream closes an idle connection, and until that is known at the other end. */
  const [kept, underway] = [60, 60];
  const closed = new WeakSet<Socket>();
  const timers = new WeakMap<Socket, NodeJS.Timeout>();
  const upstream = await upstreamFor(t, {
    '*': (req, res, recorded) => {
      const { socket } = req;
      // What arrives at a socket that its owner has closed gets lost.
      if (closed.has(socket)) return void socket.destroy();
      clearTimeout(timers.get(socket));
      const close = () => {
        closed.add(socket);
        setTimeout(() => socket.end(), underway);
      };
      timers.set(socket, setTimeout(close, kept));
      return faults.json({ value: 1 })(req, res, recorded);
    },
  });
  const service = await serviceFor(t, oneApi(upstream.url, { e: { method: 'POST' } }));
  const statuses: number[] = [];
  for (let turn = 0; turn < 10; turn++) {
    const { status } = await service.post('api/e');
    statuses.push(status);
    await sleep(kept + underway / 2);
  }
  assert.deepEqual(statuses, Array(10).fill(200));
  assert.equal(upstream.requests.length, 10);
});
