/** Idle connections are used no longer than their server keeps them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { IdleLifetime } from '../../../lib/http/client/idle-lifetime.ts';

const milliseconds = fc.integer({ min: 0, max: 100_000 });

describe('what is known of the idle connections of a server', () => {
  it('is at first that one can be used again right after an answer', () => {
    const lifetime = new IdleLifetime();
    assert.deepEqual(
      [0, 5, 6].map((age) => lifetime.covers(age)),
      [true, true, false],
    );
  });

  it('grows with what was seen: half of it counts, less ten milliseconds', () => {
    const lifetime = new IdleLifetime();
    lifetime.survived(1000);
    lifetime.survived(400);
    assert.deepEqual(
      [490, 491].map((age) => lifetime.covers(age)),
      [true, false],
    );
  });

  it('ends where the server closed a connection, and grows again after that', () => {
    const lifetime = new IdleLifetime();
    lifetime.survived(4000);
    lifetime.ended(100);
    assert.deepEqual(
      [40, 41].map((age) => lifetime.covers(age)),
      [true, false],
    );
    lifetime.survived(200);
    assert.deepEqual(
      [90, 91].map((age) => lifetime.covers(age)),
      [true, false],
    );
  });

  it('never covers half of the time after which a connection was closed last', () => {
    fc.assert(
      fc.property(fc.array(milliseconds), milliseconds, (before, end) => {
        const lifetime = new IdleLifetime();
        for (const age of before) lifetime.survived(age);
        lifetime.ended(end);
        assert.equal(lifetime.covers(end / 2), false);
      }),
    );
  });
});
