import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MeterRegistry, type MeterSink, type MeterSpec } from '../../plugins-sdk/index.ts';

const labelled = { name: 'calls_total', help: 'Calls', labels: ['outcome'] } as const;
const bare = { name: 'events_total', help: 'Events' } as const;
const timed = { name: 'call_seconds', help: 'Duration of calls', labels: ['api'] } as const;
const depth = { name: 'queue', help: 'Who waits' } as const;

/** A sink that writes down what reaches it. */
class Notebook implements MeterSink {
  readonly opened: [string, MeterSpec][] = [];
  readonly measured: [string, string, Readonly<Record<string, string>>, number][] = [];
  readonly gauges = new Map<string, () => number>();

  counter(spec: MeterSpec) {
    return this.#open('counter', spec);
  }

  histogram(spec: MeterSpec) {
    return this.#open('histogram', spec);
  }

  gauge(spec: MeterSpec, read: () => number) {
    this.opened.push(['gauge', spec]);
    this.gauges.set(spec.name, read);
  }

  /** What the gauges say now. */
  read(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.gauges].map(([name, read]) => [name, read()]));
  }

  #open(kind: string, spec: MeterSpec) {
    this.opened.push([kind, spec]);
    return (labels: Readonly<Record<string, string>>, value: number) => {
      this.measured.push([kind, spec.name, labels, value]);
    };
  }
}

describe('Meters', () => {
  it('without a sink measure nothing, and a later sink hears nothing of it', () => {
    const meters = new MeterRegistry();
    const calls = meters.counter(labelled);
    calls({ outcome: 'ok' }, 1);
    const sink = new Notebook();
    meters.connect(sink);
    assert.deepEqual(sink.measured, []);
  });

  it('read no gauge unless the sink asks', () => {
    const meters = new MeterRegistry();
    let reads = 0;
    meters.gauge(depth, () => ++reads);
    const sink = new Notebook();
    meters.connect(sink);
    assert.equal(reads, 0);
    assert.deepEqual([sink.read(), sink.read()], [{ queue: 1 }, { queue: 2 }]);
  });

  it('hand a sink the instruments that were made before it, and those after it', () => {
    const meters = new MeterRegistry();
    const before = meters.counter(labelled);
    meters.gauge(depth, () => 3);
    const sink = new Notebook();
    meters.connect(sink);
    const after = meters.histogram(timed);
    const last = meters.counter(bare);
    meters.gauge({ name: 'later', help: 'Later' }, () => 4);
    assert.deepEqual(sink.opened, [
      ['counter', labelled],
      ['gauge', depth],
      ['histogram', timed],
      ['counter', bare],
      ['gauge', { name: 'later', help: 'Later' }],
    ]);
    before({ outcome: 'ok' }, 1);
    after({ api: 'a' }, 0.25);
    last({}, 2);
    assert.deepEqual(sink.measured, [
      ['counter', 'calls_total', { outcome: 'ok' }, 1],
      ['histogram', 'call_seconds', { api: 'a' }, 0.25],
      ['counter', 'events_total', {}, 2],
    ]);
    assert.deepEqual(sink.read(), { queue: 3, later: 4 });
  });

  it('hand a sink histograms that were made before it', () => {
    const meters = new MeterRegistry();
    const seconds = meters.histogram(timed);
    const sink = new Notebook();
    meters.connect(sink);
    seconds({ api: 'a' }, 1.5);
    assert.deepEqual(sink.opened, [['histogram', timed]]);
    assert.deepEqual(sink.measured, [['histogram', 'call_seconds', { api: 'a' }, 1.5]]);
  });

  it('have one instrument of a name, whoever asks for it', () => {
    const meters = new MeterRegistry();
    const sink = new Notebook();
    const early = [meters.counter(labelled), meters.counter(labelled)];
    meters.connect(sink);
    const late = [meters.counter(labelled), meters.histogram(timed), meters.histogram(timed)];
    assert.deepEqual(
      sink.opened.map(([kind]) => kind),
      ['counter', 'histogram'],
    );
    for (const measure of early) measure({ outcome: 'ok' }, 1);
    late[0]?.({ outcome: 'ok', api: 'a' }, 1);
    assert.equal(sink.measured.length, 3);
  });

  it('read the function that a gauge was given last, without opening it again', () => {
    const meters = new MeterRegistry();
    meters.gauge(depth, () => 1);
    const sink = new Notebook();
    meters.connect(sink);
    meters.gauge(depth, () => 2);
    assert.deepEqual([sink.opened.length, sink.read()], [1, { queue: 2 }]);
    const other = new Notebook();
    meters.connect(other);
    assert.deepEqual(other.read(), { queue: 2 });
  });

  it('speak to the sink that was connected last only', () => {
    const meters = new MeterRegistry();
    const calls = meters.counter(labelled);
    const [first, second] = [new Notebook(), new Notebook()];
    meters.connect(first);
    calls({ outcome: 'ok' }, 1);
    meters.connect(second);
    calls({ outcome: 'failed' }, 1);
    meters.counter(bare);
    assert.deepEqual(first.measured, [['counter', 'calls_total', { outcome: 'ok' }, 1]]);
    assert.deepEqual(second.measured, [['counter', 'calls_total', { outcome: 'failed' }, 1]]);
    assert.deepEqual([first.opened.length, second.opened.length], [1, 2]);
  });

  it('open nothing twice when the same sink is connected again', () => {
    const meters = new MeterRegistry();
    const calls = meters.counter(labelled);
    const sink = new Notebook();
    meters.connect(sink);
    meters.connect(sink);
    calls({ outcome: 'ok' }, 1);
    assert.deepEqual([sink.opened.length, sink.measured.length], [1, 1]);
  });

  it('of two services are apart', () => {
    const [one, other] = [new MeterRegistry(), new MeterRegistry()];
    const sink = new Notebook();
    one.connect(sink);
    other.counter(labelled)({ outcome: 'ok' }, 1);
    assert.deepEqual([sink.opened, sink.measured], [[], []]);
  });

  it('of a set of plugins are read once it is in force, and those of the set before until then', () => {
    const meters = new MeterRegistry();
    const sink = new Notebook();
    meters.connect(sink);
    const first = meters.draft();
    first.gauge(depth, () => 1);
    first.gauge({ name: 'gone', help: 'Gone' }, () => 2);
    assert.deepEqual(sink.read(), { queue: 0, gone: 0 });
    first.commit();
    assert.deepEqual(sink.read(), { queue: 1, gone: 2 });
    const second = meters.draft();
    second.gauge(depth, () => 3);
    assert.deepEqual(sink.read(), { queue: 1, gone: 2 });
    second.commit();
    assert.deepEqual(sink.read(), { queue: 3, gone: 0 });
  });

  it('of a set of plugins that is in force are read also when they are made late', () => {
    const meters = new MeterRegistry();
    const sink = new Notebook();
    meters.connect(sink);
    const first = meters.draft();
    first.commit();
    first.gauge(depth, () => 1);
    first.gauge({ name: 'late', help: 'Late' }, () => 2);
    assert.deepEqual(sink.read(), { queue: 1, late: 2 });
    const second = meters.draft();
    second.gauge(depth, () => 3);
    second.commit();
    assert.deepEqual(sink.read(), { queue: 3, late: 0 });
    // Requests that began before are still under way there.
    first.gauge(depth, () => 4);
    first.gauge({ name: 'latest', help: 'Too late' }, () => 5);
    assert.deepEqual(sink.read(), { queue: 3, late: 0, latest: 0 });
  });

  it('of a set of plugins count on where the set before has stopped', () => {
    const meters = new MeterRegistry();
    const sink = new Notebook();
    const draft = meters.draft();
    draft.connect(sink);
    draft.counter(labelled)({ outcome: 'ok' }, 1);
    draft.histogram(timed)({ api: 'a' }, 2);
    meters.draft().counter(labelled)({ outcome: 'ok' }, 3);
    assert.deepEqual(sink.measured, [
      ['counter', 'calls_total', { outcome: 'ok' }, 1],
      ['histogram', 'call_seconds', { api: 'a' }, 2],
      ['counter', 'calls_total', { outcome: 'ok' }, 3],
    ]);
    assert.equal(sink.opened.length, 2);
  });
});
