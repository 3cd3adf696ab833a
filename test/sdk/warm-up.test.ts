/** A warm-up is done once, holds nobody up, and leaves failures to the requests. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { warmUp } from '../../lib/process/warm-up.ts';

const passed = async (t: TestContext) => {
  t.mock.timers.tick(1000);
  await new Promise((resolve) => setImmediate(resolve));
};

describe('warmUp', () => {
  it('does its work once, after whoever asked has gone on', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let calls = 0;
    warmUp(() => {
      calls += 1;
    });
    assert.equal(calls, 0);
    await passed(t);
    await passed(t);
    assert.equal(calls, 1);
  });

  it('leaves it to the request to find out what fails', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const calls: string[] = [];
    warmUp(() => {
      calls.push('thrown');
      throw new Error('no file descriptor is left');
    });
    warmUp(() => {
      calls.push('rejected');
      return Promise.reject(new Error('no file descriptor is left'));
    });
    await passed(t);
    assert.deepEqual(calls, ['thrown', 'rejected']);
  });
});
