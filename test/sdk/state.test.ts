/** What plugins keep lives on with their set, and has an end. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { StateKey, StateStore } from '../../plugins-sdk/state/store.ts';

const counter = () => {
  let made = 0;
  return { make: () => ({ number: ++made }), made: () => made };
};

describe('what a set of plugins keeps', () => {
  const key = new StateKey<{ number: number }>('k');

  it('is one value for a key, made once', () => {
    const { make, made } = counter();
    const store = new StateStore();
    assert.equal(store.keep(key, 'v', make), store.keep(key, 'v', make));
    assert.equal(made(), 1);
  });

  it('is taken over by the set after it, in the same version', () => {
    const { make } = counter();
    const first = new StateStore();
    const value = first.keep(key, 'v', make);
    assert.equal(new StateStore(first).keep(key, 'v', make), value);
  });

  it('is made anew for another version, and the set before goes on with its own', () => {
    const { make } = counter();
    const first = new StateStore();
    const value = first.keep(key, 'v', make);
    const second = new StateStore(first);
    assert.deepEqual(second.keep(key, 'w', make), { number: 2 });
    assert.equal(first.keep(key, 'v', make), value);
  });

  it('is in one version: who asks for another is told so', () => {
    const { make, made } = counter();
    const store = new StateStore();
    const value = store.keep(key, 'v', make);
    assert.throws(() => store.keep(key, 'w', make), { message: 'the state "k" is asked for in two versions' });
    assert.equal(store.keep(key, 'v', make), value);
    assert.equal(made(), 1);
  });

  it('is another’s under a key of the same name', () => {
    const { make } = counter();
    const store = new StateStore();
    assert.notEqual(store.keep(key, 'v', make), store.keep(new StateKey<{ number: number }>('k'), 'v', make));
  });

  it('is gone after a set that did not ask for it, unless it is lasting', () => {
    const { make } = counter();
    const lasting = new StateKey<{ number: number }>('l', { lasting: true });
    const first = new StateStore();
    const [short, long] = [first.keep(key, 'v', make), first.keep(lasting, 'v', make)];
    const second = new StateStore(first);
    second.settle();
    const third = new StateStore(second);
    assert.notEqual(third.keep(key, 'v', make), short);
    assert.equal(third.keep(lasting, 'v', make), long);
  });

  it('a lasting one that was replaced stays replaced', () => {
    const { make } = counter();
    const lasting = new StateKey<{ number: number }>('l', { lasting: true });
    const first = new StateStore();
    first.keep(lasting, 'v', make);
    const second = new StateStore(first);
    const value = second.keep(lasting, 'w', make);
    second.settle();
    assert.equal(new StateStore(second).keep(lasting, 'w', make), value);
  });
});

describe('what has an end', () => {
  class Closing {
    closed = 0;
    async close() {
      this.closed += 1;
    }
  }
  const key = new StateKey<Closing>('k');
  const make = () => new Closing();

  it('all are closed, although one of them throws', async () => {
    const store = new StateStore();
    const throwing = new StateKey<{ close(): void }>('t');
    store.keep(throwing, '', () => ({
      close() {
        throw new Error('stuck');
      },
    }));
    const value = store.keep(key, '', make);
    await assert.rejects(store.closeAllBut([]), /stuck/);
    assert.equal(value.closed, 1);
  });
});

it('no set keeps those before it in memory, once it is settled', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const key = new StateKey<object>('k');
  const begin = () => {
    const first = new StateStore();
    return { first, value: new WeakRef(first.keep(key, 'v', () => ({}))) };
  };
  const grow = () => {
    const { first, value } = begin();
    const second = new StateStore(first);
    second.keep(key, 'w', () => ({}));
    second.settle();
    return { second, value };
  };
  const { second, value } = grow();
  // What a weak reference has shown lives until the turn ends.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  assert.equal(value.deref(), undefined);
  assert.ok(second);
});
