/** A note stays with its object, and shows nowhere. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inMap, privateNotes } from '../../lib/objects/private-notes.ts';

for (const [engine, make] of Object.entries({ 'this engine': privateNotes, 'an engine of later': inMap }))
  test(`a note stays with its object, frozen or not, and shows nowhere: in ${engine}`, () => {
    const [notes, others] = [make<number>(), make<number>()];
    const frozen = Object.freeze({ a: 1 });
    assert.equal(notes.set(frozen, 1), frozen);
    notes.set(frozen, 2);
    assert.deepEqual([notes.get(frozen), others.get(frozen), notes.get({ ...frozen })], [2, undefined, undefined]);
    assert.deepEqual([frozen, Reflect.ownKeys(frozen)], [{ a: 1 }, ['a']]);
    assert.equal(notes.get(new Proxy(frozen, {})), undefined);
    for (const none of [undefined, null, 1, 'a']) assert.equal(notes.get(none), undefined);
  });
