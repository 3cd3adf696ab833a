/** State in a server keeps the contract of engines. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, it } from 'node:test';
import type { StateEngine } from '../../plugins-sdk/state/area.ts';
import { stopAll, suite } from '../support/lifetime.ts';
import { contract } from './contract.ts';
import { describeServers, openEngine, RedisServer, redisFor } from './redis-server.ts';

const HOUR = 3_600_000;

describeServers('state in a server', (program) => {
  contract(async () => {
    const server = await RedisServer.start(program);
    const { engine } = openEngine({ url: server.url });
    await engine.start();
    return {
      area: () => engine.area(randomUUID()),
      close: async () => {
        await engine.close();
        await server.stop();
      },
    };
  });
});

describeServers('what an engine does to its server', async (program) => {
  let engine: StateEngine;

  const server = await redisFor(suite, program);
  ({ engine } = openEngine({ url: `${server.url}/3`, prefix: 'p:' }));
  await engine.start();

  after(() => stopAll(engine));

  /** What an operator asks of the engine's database. */
  const ask = (...words: string[]) => server.commandIn(3, ...words);

  it('keeps to its database and its prefix', async () => {
    const area = engine.area('pay');
    await area.compareAndSet('k', undefined, 'text', { ttl: HOUR });
    await area.takeTokens('k', { max: 3, window: HOUR });
    const keys = await ask('KEYS', '*');
    assert.ok(Array.isArray(keys));
    assert.deepEqual(keys.toSorted(), ['p:pay:b:k', 'p:pay:v:k']);
    assert.equal(await ask('GET', 'p:pay:v:k'), 'text');
    assert.deepEqual(await server.command('KEYS', '*'), []);
  });

  it('keeps areas apart whose names and keys look alike', async () => {
    await engine.area('a').compareAndSet('v:k', undefined, '1');
    assert.equal(await engine.area('a:v').get('k'), undefined);
  });

  it('leaves nothing of what has ended, is deleted, or is full again', async () => {
    const area = engine.area('gone');
    await area.compareAndSet('k', undefined, 'text');
    await area.compareAndSet('k', 'text', undefined);
    await area.takeTokens('k', { max: 3, window: HOUR }, 0);
    assert.deepEqual(await ask('KEYS', 'p:gone:*'), []);
    await area.takeTokens('k', { max: 4, window: 400 }, 3);
    const left = Number(await ask('PTTL', 'p:gone:b:k'));
    assert.ok(left <= 300, `${left} ms`);
  });

  it('sends a script once, and again when the server has forgotten it', async () => {
    const area = engine.area('scripts');
    const sent = async () => {
      const stats = String(await ask('INFO', 'commandstats'));
      return ['eval', 'evalsha'].map((name) =>
        Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
      );
    };
    await area.compareAndSet('k', undefined, '1');
    await ask('CONFIG', 'RESETSTAT');
    await area.compareAndSet('k', '1', '2');
    assert.deepEqual(await sent(), [0, 1]);
    await ask('SCRIPT', 'FLUSH');
    const swaps = ['3', '4'].map((next) => area.compareAndSet('k', '2', next));
    assert.deepEqual(await Promise.all(swaps), [undefined, { value: '3' }]);
    assert.deepEqual(await sent(), [1, 4]);
    await area.compareAndSet('k', '3', '5');
    assert.deepEqual(await sent(), [1, 5]);
    assert.equal((await area.takeTokens('k', { max: 3, window: HOUR })).left, 2);
  });

  it('goes by the clock of the server', async (t) => {
    const area = engine.area('clock');
    const { now } = Date;
    const limit = { max: 10, window: 1000 * HOUR };
    for (const skew of [600_000, -600_000]) {
      t.mock.method(Date, 'now', () => now() + skew);
      await area.compareAndSet(`k${skew}`, undefined, 'text', { ttl: HOUR });
      const left = Number(await ask('PTTL', `p:clock:v:k${skew}`));
      assert.ok(left > HOUR - 60_000 && left <= HOUR, `${left} ms`);
      await area.takeTokens('bucket', limit);
    }
    const [seconds] = (await ask('TIME')) as string[];
    const [, at] = String(await ask('GET', 'p:clock:b:bucket')).split(' ');
    assert.ok(Math.abs(Number(at) - Number(seconds) * 1000) < 60_000);
    assert.equal(Math.floor((await area.takeTokens('bucket', limit)).left + 0.01), 7);
  });

  it('counts with all digits', async () => {
    const area = engine.area('digits');
    const limit = { max: 1e15, window: 1000 * HOUR };
    assert.equal((await area.takeTokens('k', limit, 999_999_999_999_999)).left, 1);
    const third = await area.takeTokens('third', { max: 1, window: 1e15 }, 0, 1 / 3);
    assert.deepEqual(third, { granted: 0, retryAfter: 0, left: 1 - 1 / 3 });
    assert.equal(String(await ask('GET', 'p:digits:b:third')).split(' ')[0], '0.33333333333333331');
  });

  it('ends a value at once whose time is a fraction of a millisecond, and never one whose time is endless', async () => {
    const area = engine.area('odd times');
    await area.compareAndSet('a', undefined, '1', { ttl: Number.POSITIVE_INFINITY });
    assert.equal(await ask('PTTL', 'p:odd%20times:v:a'), -1);
    assert.equal(await area.compareAndSet('b', undefined, '1', { ttl: 0.4 }), undefined);
    assert.ok(Number(await ask('PTTL', 'p:odd%20times:v:b')) <= 1);
  });
});
