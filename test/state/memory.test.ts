/** State in memory keeps the contract of engines. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StateUnavailable } from '../../plugins-sdk/state/area.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import { contract } from './contract.ts';

describe('state in memory', () => {
  contract(() => ({ area: () => new MemoryArea() }));

  it('drops nothing that is live to make room', async () => {
    const area = new MemoryArea({ capacity: 1 });
    await area.compareAndSet('a', undefined, '1', { ttl: 1000 });
    await assert.rejects(area.compareAndSet('b', undefined, '1'), StateUnavailable);
    await area.takeTokens('a', { max: 1, window: 1000 });
    await assert.rejects(area.takeTokens('b', { max: 1, window: 1000 }), StateUnavailable);
    assert.equal(await area.get('a'), '1');
  });

  it('goes by its clock', async () => {
    let now = 0;
    const area = new MemoryArea({ now: () => now });
    await area.compareAndSet('a', undefined, '1', { ttl: 10 });
    now = 9;
    assert.equal(await area.get('a'), '1');
    now = 10;
    assert.equal(await area.get('a'), undefined);
    const limit = { max: 4, window: 400 };
    assert.deepEqual(await area.takeTokens('b', limit, 1, 6), { granted: 0, retryAfter: 300, left: -2 });
    now = 310;
    assert.deepEqual(await area.takeTokens('b', limit, 3), { granted: 1, retryAfter: 100, left: 0 });
  });
});
