/** An engine whose server fails says so, and recovers with it. */

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { type StateEngine, StateUnavailable } from '../../plugins-sdk/state/area.ts';
import { eventually, retried } from '../support/wait.ts';
import { type Cut, CuttingProxy } from './redis-proxy.ts';
import { type Directives, describeServers, openEngine, redisFor } from './redis-server.ts';

const HOUR = 3_600_000;
const limit = { max: 10, window: 1000 * HOUR };

describeServers('an engine whose server fails', (program) => {
  const start = (t: TestContext, directives: Directives = {}) => redisFor(t, program, directives);

  const open = async (t: TestContext, url: string): Promise<StateEngine> => {
    const { engine } = openEngine({ url });
    t.after(() => engine.close());
    await engine.start();
    return engine;
  };

  const openProxied = async (t: TestContext) => {
    const proxy = await CuttingProxy.start(t, (await start(t)).port);
    return { proxy, area: (await open(t, proxy.url)).area('a') };
  };
  const openArea = async (t: TestContext, directives: Directives = {}) => {
    const server = await start(t, directives);
    return { server, area: (await open(t, server.url)).area('a') };
  };

  it('loses nothing that was acknowledged when it is killed again and again, and needs no restart itself', async (t) => {
    const { server, area } = await openArea(t);
    const acknowledged: string[] = [];
    let next = 0;
    for (let round = 1; round <= 3; round++) {
      let isAway = false;
      const write = async () => {
        while (!isAway) {
          const key = `${next++}`;
          try {
            assert.equal(await area.compareAndSet(key, undefined, `value ${key}`, { durable: true }), undefined);
            acknowledged.push(key);
          } catch (error) {
            assert.ok(error instanceof StateUnavailable, String(error));
            isAway = true;
          }
        }
      };
      const writers = Array.from({ length: 16 }, write);
      await retried(() => assert.ok(acknowledged.length > round * 200, 'too few'));
      await server.kill();
      await Promise.all(writers);
      await retried(async () => {
        const message = `${server.name} cannot be reached: ECONNREFUSED`;
        await assert.rejects(area.get('0'), new StateUnavailable(message));
      });
      await server.run();
      await retried(() => area.get('0'));
      const values = await Promise.all(acknowledged.map((key) => area.get(key)));
      assert.deepEqual(
        values,
        acknowledged.map((key) => `value ${key}`),
      );
    }
  });

  const cuts: readonly [Cut, string, { readonly rejects: boolean; readonly done: boolean }][] = [
    ['request', 'before the server hears of it', { rejects: true, done: false }],
    ['reply', 'before its answer gets through', { rejects: true, done: true }],
    ['after', 'after its answer', { rejects: false, done: true }],
  ];
  for (const [cut, when, { rejects, done }] of cuts) {
    it(`does a command at most once whose connection is cut ${when}`, async (t) => {
      const { proxy, area } = await openProxied(t);
      const ended = async <T>(command: Promise<T>, value: T) => {
        if (rejects) await assert.rejects(command, StateUnavailable);
        else assert.deepEqual(await command, value);
      };
      await area.compareAndSet('known', undefined, '1');
      await area.takeTokens('bucket', limit);
      proxy.cutAt(cut);
      await ended(area.get('known'), '1');
      await retried(() => area.get('known'));
      proxy.cutAt(cut);
      await ended(area.compareAndSet('k', undefined, 'text'), undefined);
      assert.equal(await retried(() => area.get('k')), done ? 'text' : undefined);
      proxy.cutAt(cut);
      await ended(area.compareAndSet('known', '1', undefined), undefined);
      assert.equal(await retried(() => area.get('known')), done ? undefined : '1');
      proxy.cutAt(cut);
      const taking = area.takeTokens('bucket', limit);
      if (rejects) await assert.rejects(taking, StateUnavailable);
      else assert.equal((await taking).granted, 1);
      const { left } = await retried(() => area.takeTokens('bucket', limit, 0));
      assert.equal(Math.floor(left + 0.01), done ? 8 : 9);
    });
  }

  it('rejects at once what was asked for together on a connection that is cut', async (t) => {
    const { proxy, area } = await openProxied(t);
    proxy.cutAt('request');
    const asked = await Promise.allSettled(['a', 'b', 'c'].map((key) => area.get(key)));
    assert.deepEqual(
      asked.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    );
  });

  it('looks for a server that is away after longer and longer pauses', async (t) => {
    const { proxy } = await openProxied(t);
    proxy.isAway = true;
    await eventually(() => proxy.refusedAt.length > 4);
    const [, , , fourth = 0, fifth = 0] = proxy.refusedAt;
    // The time is the promise here: an attempt that comes sooner breaks it, a later one does not.
    assert.ok(fifth - fourth >= 390, `${fifth - fourth} ms`);
  });

  it('leaves a server that became a replica, for where the name leads then', async (t) => {
    const [one, other] = [await start(t), await start(t)];
    const proxy = await CuttingProxy.start(t, one.port);
    const area = (await open(t, proxy.url)).area('a');
    await area.compareAndSet('k', undefined, 'one');
    await one.command('REPLICAOF', '127.0.0.1', '1');
    await assert.rejects(area.compareAndSet('k', 'one', undefined), /^StateUnavailable|READONLY/);
    const name = `redis at 127.0.0.1:${proxy.port}`;
    const replica = new StateUnavailable(`${name} is a replica: url must lead to the primary`);
    await retried(() => assert.rejects(area.get('k'), replica));
    await assert.rejects(area.compareAndSet('k', undefined, 'two'), StateUnavailable);
    proxy.target = other.port;
    assert.equal(await retried(() => area.compareAndSet('k', undefined, 'two')), undefined);
    assert.equal(await other.command('GET', 'sdp:a:v:k'), 'two');
  });

  it('comes back to a replica that is made the primary', async (t) => {
    const { server, area } = await openArea(t);
    await server.command('REPLICAOF', '127.0.0.1', '1');
    await assert.rejects(area.takeTokens('k', limit), /READONLY/);
    await server.command('REPLICAOF', 'NO', 'ONE');
    assert.equal((await retried(() => area.takeTokens('k', limit))).left, 9);
  });

  it('deletes, but writes nothing, where there is no memory left', async (t) => {
    const { server, area } = await openArea(t);
    await area.compareAndSet('k', undefined, '1');
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    const message = `${server.name} answered: OOM command not allowed when used memory > 'maxmemory'.`;
    const isFull = (error: unknown) => error instanceof StateUnavailable && error.message === message;
    await assert.rejects(area.compareAndSet('other', undefined, '1'), isFull);
    await assert.rejects(area.compareAndSet('k', '1', '2'), isFull);
    await assert.rejects(area.takeTokens('k', limit), isFull);
    assert.equal(await area.get('k'), '1');
    assert.equal(await area.compareAndSet('k', '1', undefined), undefined);
    assert.equal(await area.get('k'), undefined);
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    assert.equal(await area.compareAndSet('k', undefined, '1'), undefined);
  });

  it('writes nothing where too few replicas would get it', async (t) => {
    const { server, area } = await openArea(t);
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    await assert.rejects(area.compareAndSet('k', undefined, '1'), /NOREPLICAS/);
    await assert.rejects(area.compareAndSet('k', undefined, undefined), /NOREPLICAS/);
    assert.equal(await area.get('k'), undefined);
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
    assert.equal(await area.compareAndSet('k', undefined, '1'), undefined);
  });

  it('waits while the server stands still, and goes on with it', async (t) => {
    const { server, area } = await openArea(t);
    server.signal('SIGSTOP');
    let settled = 0;
    const swaps = ['1', '2', '3'].map((next) => area.compareAndSet('k', undefined, next).finally(() => settled++));
    await setTimeout(100);
    assert.equal(settled, 0);
    server.signal('SIGCONT');
    assert.deepEqual(await Promise.all(swaps), [undefined, { value: '1' }, { value: '1' }]);
  });

  it('gives a connection up on which nothing comes any more, and finds the server again', async (t) => {
    const { server, area } = await openArea(t);
    server.signal('SIGSTOP');
    await assert.rejects(area.get('k'), new StateUnavailable(`${server.name} does not answer`));
    await assert.rejects(area.get('k'), StateUnavailable);
    server.signal('SIGCONT');
    assert.equal(await retried(() => area.compareAndSet('k', undefined, '1')), undefined);
  });

  it('finds nothing in a server that was emptied', async (t) => {
    const { server, area } = await openArea(t);
    await area.compareAndSet('k', undefined, '1');
    await area.takeTokens('k', limit, 10);
    await server.command('FLUSHALL');
    assert.equal(await area.get('k'), undefined);
    assert.deepEqual(await area.compareAndSet('k', '1', '2'), {});
    assert.deepEqual(await area.takeTokens('k', limit, 3), { granted: 3, retryAfter: 0, left: 7 });
  });

  it('can be closed while the server is away, stands still, or never was there', async (t) => {
    const server = await start(t);
    for (const fault of ['SIGSTOP', 'SIGKILL'] as const) {
      const { engine } = openEngine({ url: server.url });
      await engine.start();
      const area = engine.area('a');
      server.signal(fault);
      if (fault === 'SIGKILL') await retried(() => assert.rejects(area.get('k'), /ECONNREFUSED/));
      const asked = area.get('k');
      await Promise.all([engine.close(), assert.rejects(asked, StateUnavailable)]);
      await assert.rejects(area.get('k'), StateUnavailable);
      server.signal('SIGCONT');
    }
    const { engine } = openEngine({ url: server.url });
    await assert.rejects(engine.area('a').get('k'), new StateUnavailable(`${server.name} is not connected`));
    await engine.close();
  });
});
