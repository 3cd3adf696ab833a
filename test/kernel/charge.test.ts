/** What a plugin has left of its budget is charged once, whatever its calls leave behind. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Charge } from '../../kernel/charge.ts';
import { deferred } from '../../lib/time.ts';
import { block } from '../support/fuzz/situation.ts';

it('a charge counts a call that comes after one whose free work still goes on', async () => {
  const charge = new Charge(1000);
  const { promise, resolve } = deferred<undefined>();
  const left = charge.begin();
  const free = charge.uncharged(() => promise);
  charge.chargeTime();
  charge.end(left);
  const begun = charge.begin();
  block(20);
  charge.chargeTime();
  assert.ok(charge.end(begun) >= 20);
  resolve(undefined);
  await free;
  const { remaining } = charge;
  block(5);
  charge.chargeTime();
  assert.equal(charge.remaining, remaining);
});
