/** What a plugin has left of its budget is charged once, whatever its calls leave behind. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Charge, type ChargedCall } from '../../kernel/charge.ts';
import { deferred } from '../../lib/time.ts';
import { block } from '../support/fuzz/situation.ts';

function begin(charge: Charge): ChargedCall {
  const call: ChargedCall = { used: 0, waitsFor: 0, previous: undefined };
  charge.begin(call);
  return call;
}

it('a charge counts a call that comes after one whose free work still goes on', async () => {
  const charge = new Charge(1000);
  const { promise, resolve } = deferred<undefined>();
  const left = begin(charge);
  const free = charge.uncharged(() => promise);
  charge.end(left);
  const begun = begin(charge);
  block(20);
  charge.end(begun);
  assert.ok(begun.used >= 20);
  resolve(undefined);
  await free;
  const { remaining } = charge;
  block(5);
  charge.chargeTime();
  assert.equal(charge.remaining, remaining);
});

it('a charge divides its time between calls, also where an outer one ends first', () => {
  const charge = new Charge(1000);
  const outer = begin(charge);
  block(15);
  const inner = begin(charge);
  block(20);
  charge.end(outer);
  block(5);
  charge.end(inner);
  assert.ok(outer.used >= 15 && inner.used >= 25, `${outer.used}, ${inner.used}`);
  assert.ok(Math.abs(outer.used + inner.used - (1000 - charge.remaining)) < 0.001);
});

it('a charge counts a call inside one that waits for two kinds of uncharged work', async () => {
  const charge = new Charge(1000);
  const { promise, resolve } = deferred<undefined>();
  const outer = begin(charge);
  const works = [charge.uncharged(() => promise), charge.uncharged(() => promise, outer)];
  const inner = begin(charge);
  block(20);
  charge.end(inner);
  block(20);
  charge.chargeTime();
  assert.ok(inner.used >= 20);
  assert.ok(outer.used < 20, `${outer.used}`);
  resolve(undefined);
  await Promise.all(works);
  block(5);
  charge.chargeTime();
  assert.ok(outer.used >= 5);
});
