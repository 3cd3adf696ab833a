/** Hosts are looked up, and connections to many of them are bounded. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { knowNames } from '../../support/names.ts';
import { eventually } from '../../support/wait.ts';
import { renewed, text, upstream } from './setup.ts';

renewed();

describe('hosts', () => {
  it('may be a thousand: their connections are kept, and closed when there is one more', {
    timeout: 30_000,
  }, async () => {
    // The upstream closes none of them.
    upstream.keepIdle(600_000);
    upstream.json('/', 1);
    const ask = (host: number) => text('', { url: `${upstream.url.replace('127.0.0.1', `n${host}.localhost`)}/` });
    for (let host = 0; host < 1000; host += 50)
      await Promise.all(Array.from({ length: 50 }, (_, index) => ask(host + index)));
    assert.equal(upstream.sockets, 1000);
    await ask(1000);
    await upstream.until(() => upstream.sockets === 1);
  });

  it('are looked up again after ten seconds, and reached where they were until there is an answer', async (t) => {
    const names = knowNames(t, { 'a.test': ['127.0.0.1'] });
    upstream.on('/', (_req, res) => void res.setHeader('Connection', 'close').end('1'));
    const url = `${upstream.url.replace('127.0.0.1', 'a.test')}/`;
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const askedAt = (time: number) => {
      now = time;
      t.mock.timers.tick(1);
      return text('', { url });
    };
    for (const time of [1, 10_000]) assert.equal(await askedAt(time), '1');
    assert.deepEqual(names.asked, ['a.test']);
    names.set('a.test', 'silence');
    const calls = [askedAt(10_002), askedAt(10_002)];
    await eventually(() => names.asked.length > 1);
    assert.deepEqual(await Promise.all(calls), ['1', '1']);
    // Nobody listens where they are now.
    names.set('a.test', ['127.0.0.2']);
    await new Promise(setImmediate);
    await assert.rejects(askedAt(10_002), /the connection was refused/);
    assert.deepEqual(names.asked, ['a.test', 'a.test']);
    // Name servers that fail have not said that the name is gone.
    names.set('a.test', 'EAI_AGAIN');
    await assert.rejects(askedAt(20_003), /the connection was refused/);
    names.set('a.test', 'ENOTFOUND');
    await assert.rejects(askedAt(30_004), /the host name is unknown/);
    names.set('a.test', ['127.0.0.1']);
    assert.equal(await askedAt(30_004), '1');
    names.set('a.test', 'silence');
    const before = names.asked.length;
    const waiting = askedAt(40_005);
    await eventually(() => names.asked.length > before);
    assert.equal(await waiting, '1');
    // It is gone as well where the answer comes late.
    names.set('a.test', 'ENOTFOUND');
    await new Promise(setImmediate);
    await assert.rejects(askedAt(40_005), /the host name is unknown/);
  });
});
