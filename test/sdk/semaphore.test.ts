/** Slots are handed out in order, and none is lost or invented. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Release, Semaphore } from '../../lib/bounded/semaphore.ts';

const LONG = 60_000;

function got(release: Release | undefined): Release {
  assert.ok(release);
  return release;
}

const take = (semaphore: Semaphore) => got(semaphore.tryAcquire());

/** Lets every promise that can settle now do so. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('Semaphore', () => {
  it('needs no wait when a slot is free, even with a timeout of 0', async () => {
    const semaphore = new Semaphore(1);
    const release = got(await semaphore.acquire(0));
    assert.equal(semaphore.inUse, 1);
    release();
    assert.equal(semaphore.inUse, 0);
  });

  it('gives up after the timeout and leaves the queue, and its signal', async () => {
    const semaphore = new Semaphore(1);
    const release = take(semaphore);
    const { signal } = new AbortController();
    assert.equal(await semaphore.acquire(20, signal), undefined);
    assert.equal(semaphore.waiting, 0);
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
    release();
    assert.equal(semaphore.inUse, 0);
  });

  it('gives up when the signal aborts', async () => {
    const semaphore = new Semaphore(1);
    take(semaphore);
    const controller = new AbortController();
    const call = semaphore.acquire(LONG, controller.signal);
    controller.abort();
    assert.equal(semaphore.waiting, 0);
    assert.equal(await call, undefined);
  });

  it('gives no slot to a signal that had aborted before', async () => {
    const semaphore = new Semaphore(1);
    assert.equal(await semaphore.acquire(LONG, AbortSignal.abort()), undefined);
    assert.deepEqual([semaphore.inUse, semaphore.waiting], [0, 0]);
  });

  it('waits as long as anybody likes', async () => {
    const semaphore = new Semaphore(1);
    const release = take(semaphore);
    const calls = [2 ** 31, Number.POSITIVE_INFINITY].map((timeout) => semaphore.acquire(timeout));
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(semaphore.waiting, 2);
    release();
    for (const call of calls) got(await call)();
    assert.equal(semaphore.inUse, 0);
  });

  it('hands a slot on through many waiters without a deep stack', async () => {
    const semaphore = new Semaphore(1);
    const release = take(semaphore);
    let served = 0;
    const calls = Array.from({ length: 20_000 }, async () => {
      const slot = got(await semaphore.acquire(LONG));
      served += 1;
      slot();
    });
    release();
    await Promise.all(calls);
    assert.deepEqual([served, semaphore.inUse, semaphore.waiting], [20_000, 0, 0]);
  });
});

/** What a semaphore is to do, said with two lists of caller numbers. */
interface Model {
  readonly limit: number;
  readonly holders: number[];
  queue: number[];
  last: number;
}

/** The semaphore under test and what its callers got. */
interface Real {
  readonly semaphore: Semaphore;
  readonly granted: Map<number, Release>;
  readonly rejected: Set<number>;
  readonly controllers: Map<number, AbortController>;
}

type Command = fc.AsyncCommand<Model, Real>;

async function agree(model: Model, real: Real): Promise<void> {
  await settle();
  assert.equal(real.semaphore.inUse, model.holders.length);
  assert.equal(real.semaphore.waiting, model.queue.length);
  assert.deepEqual([...real.granted.keys()].sort(), [...model.holders].sort());
}

function grantNext(model: Model): void {
  const next = model.queue.shift();
  if (next !== undefined) model.holders.push(next);
}

const acquire: Command = {
  check: () => true,
  toString: () => 'acquire',
  async run(model, real) {
    model.last += 1;
    const caller = model.last;
    if (model.holders.length < model.limit) model.holders.push(caller);
    else model.queue.push(caller);
    const controller = new AbortController();
    real.controllers.set(caller, controller);
    void real.semaphore.acquire(LONG, controller.signal).then((release) => {
      if (release) real.granted.set(caller, release);
      else real.rejected.add(caller);
    });
    await agree(model, real);
  },
};

const tryAcquire: Command = {
  check: () => true,
  toString: () => 'tryAcquire',
  async run(model, real) {
    model.last += 1;
    const release = real.semaphore.tryAcquire();
    assert.equal(release !== undefined, model.holders.length < model.limit);
    if (release) {
      model.holders.push(model.last);
      real.granted.set(model.last, release);
    }
    await agree(model, real);
  },
};

/** Releases one holder, perhaps twice, and perhaps aborts its signal afterwards, which must not matter. */
function release(which: number, twice: boolean, abortAfter: boolean): Command {
  return {
    check: ({ holders }) => holders.length > 0,
    toString: () => `release(${which}${twice ? ', twice' : ''}${abortAfter ? ', then abort' : ''})`,
    async run(model, real) {
      const [caller = 0] = model.holders.splice(which % model.holders.length, 1);
      grantNext(model);
      const slot = real.granted.get(caller);
      real.granted.delete(caller);
      slot?.();
      if (twice) slot?.();
      if (abortAfter) real.controllers.get(caller)?.abort();
      await agree(model, real);
    },
  };
}

function abort(which: number): Command {
  return {
    check: ({ queue }) => queue.length > 0,
    toString: () => `abort(${which})`,
    async run(model, real) {
      const [caller = 0] = model.queue.splice(which % model.queue.length, 1);
      real.controllers.get(caller)?.abort();
      await agree(model, real);
      assert.ok(real.rejected.has(caller));
    },
  };
}

/** Releases a slot and aborts the waiter that gets it, or the other way round, in one turn. */
function race(abortFirst: boolean): Command {
  return {
    check: ({ holders, queue }) => holders.length > 0 && queue.length > 0,
    toString: () => `race(${abortFirst ? 'abort, release' : 'release, abort'})`,
    async run(model, real) {
      const [first = 0] = model.queue;
      const holder = model.holders.shift() ?? 0;
      if (abortFirst) model.queue.shift();
      grantNext(model);
      const slot = real.granted.get(holder);
      real.granted.delete(holder);
      if (abortFirst) real.controllers.get(first)?.abort();
      slot?.();
      if (!abortFirst) real.controllers.get(first)?.abort();
      await agree(model, real);
    },
  };
}

describe('Semaphore against its model', () => {
  it('never loses or invents a slot, and keeps the order', async () => {
    const commands = fc.commands(
      [
        fc.constant(acquire),
        fc.constant(acquire),
        fc.constant(tryAcquire),
        fc.tuple(fc.nat(9), fc.boolean(), fc.boolean()).map((args) => release(...args)),
        fc.nat(9).map(abort),
        fc.boolean().map(race),
      ],
      { size: '+1' },
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), commands, async (limit, sequence) => {
        const setup = () => ({
          model: { limit, holders: [], queue: [], last: 0 } satisfies Model,
          real: {
            semaphore: new Semaphore(limit),
            granted: new Map(),
            rejected: new Set(),
            controllers: new Map(),
          } satisfies Real,
        });
        let made: ReturnType<typeof setup> | undefined;
        await fc.asyncModelRun(() => {
          made = setup();
          return made;
        }, sequence);
        for (const controller of made?.real.controllers.values() ?? []) controller.abort();
      }),
      { numRuns: 150 },
    );
  });
});
