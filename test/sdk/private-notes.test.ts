import assert from 'node:assert/strict';
import { test } from 'node:test';
import { privateNotes } from '../../plugins-sdk/private-notes.ts';

test('a note stays with its object, frozen or not, and shows nowhere', () => {
  const [notes, others] = [privateNotes<number>(), privateNotes<number>()];
  const frozen = Object.freeze({ a: 1 });
  assert.equal(notes.set(frozen, 1), frozen);
  notes.set(frozen, 2);
  assert.deepEqual([notes.get(frozen), others.get(frozen), notes.get({ ...frozen })], [2, undefined, undefined]);
  assert.deepEqual([frozen, Reflect.ownKeys(frozen)], [{ a: 1 }, ['a']]);
  assert.equal(notes.get(new Proxy(frozen, {})), undefined);
  for (const none of [undefined, null, 1, 'a']) assert.equal(notes.get(none), undefined);
});
