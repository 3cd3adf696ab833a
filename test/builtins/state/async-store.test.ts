/** The store of async requests keeps each to its end, within its bounds. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { type AsyncRecord, AsyncStore } from '../../../builtins/mode-async/store.ts';

const MINUTE = 60_000;

/** A store, and a function that lets time go by. */
function setUp({ mock: { timers } }: TestContext, capacity = 100) {
  timers.enable({ apis: ['setTimeout'] });
  return { pass: (ms: number) => timers.tick(ms), store: new AsyncStore<string>(capacity) };
}

function finish(store: AsyncStore<string>, id: string): void {
  store.reserve(id);
  store.processing(id);
  store.end(id, { status: 'complete', answer: `answer ${id}` });
}

it('keeps an unfinished request for 10 minutes from its start, processing or not', (t) => {
  const { store, pass } = setUp(t);
  store.reserve('a');
  pass(4 * MINUTE);
  store.processing('a');
  pass(6 * MINUTE - 1);
  assert.deepEqual(store.get('a'), { status: 'processing' });
  pass(1);
  assert.equal(store.get('a'), undefined);
});

it('keeps a result no longer when the clock goes back', (t) => {
  const { store, pass } = setUp(t);
  finish(store, 'a');
  t.mock.method(Date, 'now', () => 1_700_000_000_000);
  assert.ok(store.get('a'));
  pass(MINUTE);
  assert.equal(store.get('a'), undefined);
});

it('holds 100 requests and refuses the next while all are in flight', () => {
  const store = new AsyncStore<string>();
  for (let i = 0; i < 100; i++) assert.equal(store.reserve(`r${i}`), true);
  assert.equal(store.reserve('one more'), false);
  assert.equal(store.get('one more'), undefined);
  assert.equal(store.size, 100);
});

it('evicts the result that was first read the longest ago', (t) => {
  const { store } = setUp(t, 3);
  for (const id of ['a', 'b', 'c']) finish(store, id);
  store.get('b');
  store.get('a');
  store.get('b');
  assert.equal(store.reserve('d'), true);
  assert.equal(store.get('b'), undefined);
  assert.equal(store.reserve('e'), true);
  assert.equal(store.reserve('f'), false);
  assert.deepEqual(store.get('c'), { status: 'complete', answer: 'answer c' });
});

it('lets go of what has expired, although nobody asks, and of nothing else', (t) => {
  const { store, pass } = setUp(t);
  for (const id of ['a', 'b']) finish(store, id);
  store.get('a');
  store.reserve('c');
  pass(MINUTE - 1);
  assert.equal(store.size, 3);
  pass(1);
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
    this.#elapsed += ms;
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

it('answers as a plain list of requests does', (t) => {
  const { pass } = setUp(t);
  const id = fc.integer({ min: 0, max: 7 }).map(String);
  const kind = fc.constantFrom('reserve', 'processing', 'complete', 'fail', 'get');
  const kept = fc.constantFrom(1, MINUTE - 1, MINUTE, 10 * MINUTE - 1, 10 * MINUTE);
  const some = fc.oneof(kept, fc.integer({ min: 0, max: 3 * MINUTE }));
  // Mostly none, or few requests would live long enough to be evicted.
  const ms = fc.oneof({ weight: 7, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: some });
  const step = fc.record({ kind, id, ms });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 150 }), (capacity, steps) => {
      const store = new AsyncStore<string>(capacity);
      const list = new PlainList(capacity);
      for (const [turn, { kind, id, ms }] of steps.entries()) {
        pass(ms);
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
