/** The ledger of a quota keeps its counts, and forgets pauses of a clock that was wrong. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Quota } from '../../builtins/upstream-quota/quota.ts';

function quotaOn(clock: { now: number }) {
  return new Quota({ api: 'a', limits: { perDay: 10 }, area: undefined, now: () => clock.now });
}

it('counts each call that it lets in, also when a pause begins at the same time', async () => {
  const quota = quotaOn({ now: 1_800_000_000_000 });
  const taken = quota.take();
  quota.pause(1000);
  const allowed = (await taken) === undefined ? 1 : 0;
  assert.deepEqual(
    quota.uses().map(({ calls }) => calls),
    [allowed],
  );
});

it('drops a pause for good when the clock that began it is set back', async () => {
  const clock = { now: 1_800_000_000_000 };
  const quota = quotaOn(clock);
  const minute = 60_000;
  clock.now += 20 * minute;
  quota.pause(minute);
  clock.now -= 20 * minute;
  assert.equal(await quota.take(), undefined);
  clock.now += 12 * minute;
  assert.equal(await quota.take(), undefined);
});
