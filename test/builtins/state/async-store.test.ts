/** The store of async requests keeps each to its end, within its bounds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type AsyncRecord, AsyncStore } from '../../../builtins/mode-async/store.ts';

const MINUTE = 60_000;

function setUp(capacity?: number) {
  const clock = { now: 1_700_000_000_000 };
  const now = () => clock.now;
  return { clock, store: new AsyncStore<string>(capacity === undefined ? { now } : { capacity, now }) };
}

function finish(store: AsyncStore<string>, id: string): void {
  store.reserve(id);
  store.processing(id);
  store.end(id, { status: 'complete', answer: `answer ${id}` });
}

describe('states', () => {
  it('go from pending to processing to complete', () => {
    const { store } = setUp();
    assert.equal(store.reserve('a'), true);
    assert.deepEqual(store.get('a'), { status: 'pending' });
    assert.equal(store.processing('a'), true);
    assert.deepEqual(store.get('a'), { status: 'processing' });
    assert.equal(store.end('a', { status: 'complete', answer: 'signed' }), true);
    assert.deepEqual(store.get('a'), { status: 'complete', answer: 'signed' });
    assert.deepEqual(store.get('a'), { status: 'complete', answer: 'signed' });
  });

  it('go from pending to processing to failed', () => {
    const { store } = setUp();
    store.reserve('a');
    store.processing('a');
    assert.equal(store.end('a', { status: 'failed', error: 'API call failed' }), true);
    assert.deepEqual(store.get('a'), { status: 'failed', error: 'API call failed' });
  });

  type Step = readonly [name: string, (store: AsyncStore<string>) => boolean];
  const processing: Step = ['processing', (store) => store.processing('a')];
  const complete: Step = ['complete', (store) => store.end('a', { status: 'complete', answer: 'late' })];
  const fail: Step = ['failed', (store) => store.end('a', { status: 'failed', error: 'late' })];
  const refusals: [state: string, reach: Step[], refused: Step[], found: AsyncRecord<string> | undefined][] = [
    ['pending', [], [complete, fail], { status: 'pending' }],
    ['processing', [processing], [processing], { status: 'processing' }],
    ['complete', [processing, complete], [processing, complete, fail], { status: 'complete', answer: 'late' }],
    ['failed', [processing, fail], [processing, complete, fail], { status: 'failed', error: 'late' }],
  ];
  for (const [state, reach, refused, found] of refusals) {
    for (const [name, step] of refused) {
      it(`do not go from ${state} to ${name}`, () => {
        const { store } = setUp();
        store.reserve('a');
        for (const [, reached] of reach) {
          assert.equal(reached(store), true);
        }
        assert.equal(step(store), false);
        assert.deepEqual(store.get('a'), found);
      });
    }
  }

  it('of an unknown request do not exist', () => {
    const { store } = setUp();
    for (const id of ['', 'a', '__proto__', 'constructor']) {
      assert.equal(store.get(id), undefined);
      assert.equal(store.processing(id), false);
      assert.equal(store.end(id, { status: 'complete', answer: 'x' }), false);
      assert.equal(store.end(id, { status: 'failed', error: 'x' }), false);
      assert.equal(store.get(id), undefined);
    }
    assert.equal(store.size, 0);
  });

  it('of a request are not begun twice', () => {
    const { store } = setUp();
    store.reserve('a');
    store.processing('a');
    assert.equal(store.reserve('a'), false);
    assert.deepEqual(store.get('a'), { status: 'processing' });
  });
});

describe('retention', () => {
  it('of a pending request is 10 minutes', () => {
    const { store, clock } = setUp();
    store.reserve('a');
    clock.now += 10 * MINUTE - 1;
    assert.deepEqual(store.get('a'), { status: 'pending' });
    clock.now += 1;
    assert.equal(store.get('a'), undefined);
  });

  it('of a processing request is 10 minutes from its start', () => {
    const { store, clock } = setUp();
    store.reserve('a');
    clock.now += 4 * MINUTE;
    store.processing('a');
    clock.now += 6 * MINUTE - 1;
    assert.deepEqual(store.get('a'), { status: 'processing' });
    clock.now += 1;
    assert.equal(store.get('a'), undefined);
  });

  it('of a result is 1 minute from its completion, read or not', () => {
    const { store, clock } = setUp();
    for (const id of ['read', 'unread']) {
      store.reserve(id);
      store.processing(id);
    }
    clock.now += 10 * MINUTE - 1;
    store.end('read', { status: 'complete', answer: 'x' });
    store.end('unread', { status: 'failed', error: 'y' });
    store.get('read');
    clock.now += MINUTE - 1;
    assert.deepEqual(store.get('read'), { status: 'complete', answer: 'x' });
    assert.deepEqual(store.get('unread'), { status: 'failed', error: 'y' });
    clock.now += 1;
    assert.deepEqual([store.get('read'), store.get('unread')], [undefined, undefined]);
  });

  it('is not prolonged by reading', () => {
    const { store, clock } = setUp();
    finish(store, 'a');
    for (let i = 0; i < 59; i++) {
      clock.now += 1000;
      assert.ok(store.get('a'));
    }
    clock.now += 1000;
    assert.equal(store.get('a'), undefined);
  });

  for (const step of ['processing', 'end'] as const) {
    it(`that is over is not begun again by ${step}`, () => {
      const { store, clock } = setUp();
      store.reserve('a');
      if (step !== 'processing') {
        store.processing('a');
      }
      clock.now += 10 * MINUTE;
      const moved = step === 'processing' ? store.processing('a') : store.end('a', { status: 'failed', error: 'late' });
      assert.equal(moved, false);
      assert.equal(store.get('a'), undefined);
      assert.equal(store.size, 0);
    });
  }

  it('does not grow when the clock goes back', () => {
    const { store, clock } = setUp();
    finish(store, 'a');
    clock.now -= 60 * MINUTE;
    assert.ok(store.get('a'));
    clock.now += MINUTE;
    assert.equal(store.get('a'), undefined);
  });
});

describe('a full store', () => {
  it('holds 100 requests and refuses the next while all are in flight', () => {
    const { store } = setUp();
    for (let i = 0; i < 100; i++) {
      assert.equal(store.reserve(`r${i}`), true);
    }
    assert.equal(store.reserve('one more'), false);
    assert.equal(store.get('one more'), undefined);
    assert.equal(store.size, 100);
  });

  it('refuses while it holds unread results and requests in flight, polled or not', () => {
    const { store } = setUp(3);
    finish(store, 'unread');
    store.reserve('pending');
    store.reserve('processing');
    store.processing('processing');
    store.get('pending');
    store.get('processing');
    assert.equal(store.reserve('new'), false);
    assert.deepEqual(store.get('unread'), { status: 'complete', answer: 'answer unread' });
  });

  it('does not take a poll before completion for a read of the result', () => {
    const { store } = setUp(1);
    store.reserve('a');
    store.processing('a');
    store.get('a');
    store.end('a', { status: 'complete', answer: 'x' });
    assert.equal(store.reserve('b'), false);
    store.get('a');
    assert.equal(store.reserve('b'), true);
  });

  it('evicts the result that was first read the longest ago', () => {
    const { store } = setUp(3);
    for (const id of ['a', 'b', 'c']) {
      finish(store, id);
    }
    store.get('b');
    store.get('a');
    store.get('b');
    assert.equal(store.reserve('d'), true);
    assert.equal(store.get('b'), undefined);
    assert.equal(store.reserve('e'), true);
    assert.equal(store.reserve('f'), false);
    assert.deepEqual(store.get('c'), { status: 'complete', answer: 'answer c' });
  });

  it('evicts a failed result that was read', () => {
    const { store } = setUp(1);
    store.reserve('a');
    store.processing('a');
    store.end('a', { status: 'failed', error: 'x' });
    store.get('a');
    assert.equal(store.reserve('b'), true);
    assert.equal(store.get('a'), undefined);
  });

  it('drops expired entries before a result that was read', () => {
    const { store, clock } = setUp(2);
    store.reserve('old');
    clock.now += 10 * MINUTE - 1;
    finish(store, 'read');
    store.get('read');
    clock.now += 1;
    assert.equal(store.reserve('new'), true);
    assert.deepEqual(store.get('read'), { status: 'complete', answer: 'answer read' });
  });

  it('evicts nothing for an id that it holds already', () => {
    const { store } = setUp(2);
    finish(store, 'read');
    store.get('read');
    store.reserve('a');
    assert.equal(store.reserve('a'), false);
    assert.ok(store.get('read'));
  });

  it('lets go of what an evicted request finishes with', () => {
    const { store, clock } = setUp(1);
    store.reserve('a');
    store.processing('a');
    clock.now += 10 * MINUTE;
    assert.equal(store.reserve('b'), true);
    assert.equal(store.end('a', { status: 'complete', answer: 'late' }), false);
    assert.equal(store.get('a'), undefined);
    assert.deepEqual(store.get('b'), { status: 'pending' });
  });
});

it('lets go of what has expired when it is told to, and of nothing else', () => {
  const { store, clock } = setUp();
  for (const id of ['a', 'b']) finish(store, id);
  store.get('a');
  store.reserve('c');
  clock.now += MINUTE - 1;
  store.dropExpired();
  assert.equal(store.size, 3);
  clock.now += 1;
  store.dropExpired();
  assert.equal(store.size, 1);
  assert.deepEqual(store.get('c'), { status: 'pending' });
});

/** What a store of a capacity should answer, by a plain list of requests. */
class PlainList {
  #rows: { id: string; record: AsyncRecord<string>; since: number; readAt: number }[] = [];
  #elapsed = 0;
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Time goes by, and what has expired is gone. */
  pass(ms: number): void {
    this.#elapsed += Math.max(0, ms);
    this.#rows = this.#rows.filter((row) => this.#elapsed - row.since < (inFlight(row.record) ? 10 : 1) * MINUTE);
  }

  reserve(id: string): boolean {
    const full = this.#rows.length >= this.#capacity;
    const read = this.#rows.filter(({ readAt }) => readAt >= 0);
    const [evictable] = read.sort((a, b) => a.readAt - b.readAt);
    if (this.#row(id) !== undefined || (full && evictable === undefined)) return false;
    if (full) this.#rows = this.#rows.filter((row) => row !== evictable);
    this.#rows.push({ id, record: { status: 'pending' }, since: this.#elapsed, readAt: -1 });
    return true;
  }

  processing(id: string): boolean {
    const row = this.#row(id);
    if (row?.record.status !== 'pending') return false;
    row.record = { status: 'processing' };
    return true;
  }

  end(id: string, record: AsyncRecord<string>): boolean {
    const row = this.#row(id);
    if (row?.record.status !== 'processing') return false;
    Object.assign(row, { record, since: this.#elapsed });
    return true;
  }

  get(id: string, turn: number): AsyncRecord<string> | undefined {
    const row = this.#row(id);
    if (row !== undefined && !inFlight(row.record) && row.readAt < 0) row.readAt = turn;
    return row?.record;
  }

  #row(id: string) {
    return this.#rows.find((row) => row.id === id);
  }
}

const inFlight = ({ status }: AsyncRecord<string>) => status === 'pending' || status === 'processing';

it('answers as a plain list of requests does', () => {
  const id = fc.integer({ min: 0, max: 15 }).map(String);
  const kind = fc.constantFrom('reserve', 'processing', 'complete', 'fail', 'get');
  const step = fc.record({ kind, id, ms: fc.oneof(fc.constant(0), fc.integer({ min: -5000, max: 3 * MINUTE })) });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 150 }), (capacity, steps) => {
      const clock = { now: 0 };
      const store = new AsyncStore<string>({ capacity, now: () => clock.now });
      const list = new PlainList(capacity);
      for (const [turn, { kind, id, ms }] of steps.entries()) {
        clock.now += ms;
        list.pass(ms);
        const [answer, error] = [`answer ${turn}`, `error ${turn}`];
        if (kind === 'reserve') assert.equal(store.reserve(id), list.reserve(id));
        else if (kind === 'processing') assert.equal(store.processing(id), list.processing(id));
        else if (kind === 'complete')
          assert.equal(store.end(id, { status: 'complete', answer }), list.end(id, { status: 'complete', answer }));
        else if (kind === 'fail')
          assert.equal(store.end(id, { status: 'failed', error }), list.end(id, { status: 'failed', error }));
        else assert.deepEqual(store.get(id), list.get(id, turn));
        assert.ok(store.size <= capacity);
      }
    }),
    { numRuns: 1000 },
  );
});
