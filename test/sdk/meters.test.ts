/** Instruments count by name and labels, within bounds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Instrument, MeterSink, MeterSpec } from '../../plugins-sdk/meters.ts';
import { MeterRegistry, type MeterSet } from '../../service/meter-registry.ts';

const labelled = { name: 'calls_total', help: 'Calls', labels: ['outcome'] } as const;
const bare = { name: 'events_total', help: 'Events' } as const;
const timed = { name: 'call_seconds', help: 'Duration of calls', labels: ['api'] } as const;
const depth = { name: 'queue', help: 'Who waits' } as const;

/** A sink that writes down what reaches it. */
class Notebook implements MeterSink {
  readonly opened: [string, Instrument][] = [];
  readonly measured: [string, string, Readonly<Record<string, string>>, number][] = [];
  readonly gauges = new Map<string, () => number>();

  counter(spec: Instrument) {
    return this.#open('counter', spec);
  }

  histogram(spec: Instrument) {
    return this.#open('histogram', spec);
  }

  gauge(spec: Instrument, read: () => number) {
    this.opened.push(['gauge', spec]);
    this.gauges.set(spec.name, read);
  }

  /** What the gauges say now. */
  read(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.gauges].map(([name, read]) => [name, read()]));
  }

  #open(kind: string, spec: Instrument) {
    this.opened.push([kind, spec]);
    return (labels: Readonly<Record<string, string>>, value: number) => {
      this.measured.push([kind, spec.name, labels, value]);
    };
  }
}

/** As a sink gets an instrument of an operator's plugin. */
function instrument(spec: MeterSpec): Instrument {
  return { labels: [], series: 1000, ...spec };
}

/** The instruments of a service whose one plugin is in force. */
function setUp() {
  const registry = new MeterRegistry();
  const set = registry.draft();
  set.commit();
  return { registry, set, meters: set.of('p') };
}

/** A set of plugins with that gauge, in force. */
function reading(registry: MeterRegistry, plugin: string, value: number, spec = depth): MeterSet {
  const set = registry.draft();
  set.of(plugin).gauge(spec, () => value);
  set.commit();
  return set;
}

describe('Meters', () => {
  it('without a sink measure nothing, and a later sink hears nothing of it', () => {
    const { meters } = setUp();
    const calls = meters.counter(labelled);
    calls({ outcome: 'ok' }, 1);
    const sink = new Notebook();
    meters.connect(sink);
    assert.deepEqual(sink.measured, []);
  });

  it('begin with as many series as a plugin names', () => {
    setUp().meters.counter({ ...labelled, initial: Array(200_000).fill({ outcome: 'ok' }) });
  });

  it('read no gauge unless the sink asks', () => {
    const { meters } = setUp();
    let reads = 0;
    meters.gauge(depth, () => ++reads);
    const sink = new Notebook();
    meters.connect(sink);
    assert.equal(reads, 0);
    assert.deepEqual([sink.read(), sink.read()], [{ queue: 1 }, { queue: 2 }]);
  });

  it('hand a sink the instruments that were made before it, and those after it', () => {
    const { meters } = setUp();
    const before = meters.counter(labelled);
    meters.gauge(depth, () => 3);
    const early = meters.histogram(timed);
    const sink = new Notebook();
    meters.connect(sink);
    const after = meters.histogram({ ...timed, name: 'late_seconds', buckets: [1, 2] });
    const last = meters.counter(bare);
    meters.gauge({ name: 'later', help: 'Later' }, () => 4);
    assert.deepEqual(sink.opened, [
      ['counter', instrument(labelled)],
      ['gauge', instrument(depth)],
      ['histogram', instrument(timed)],
      ['histogram', instrument({ ...timed, name: 'late_seconds', buckets: [1, 2] })],
      ['counter', instrument(bare)],
      ['gauge', instrument({ name: 'later', help: 'Later' })],
    ]);
    before({ outcome: 'ok' }, 1);
    early({ api: 'a' }, 1.5);
    after({ api: 'a' }, 0.25);
    last({}, 2);
    assert.deepEqual(sink.measured, [
      ['counter', 'calls_total', { outcome: 'ok' }, 1],
      ['histogram', 'call_seconds', { api: 'a' }, 1.5],
      ['histogram', 'late_seconds', { api: 'a' }, 0.25],
      ['counter', 'events_total', {}, 2],
    ]);
    assert.deepEqual(sink.read(), { queue: 3, later: 4 });
  });

  it('have one instrument of a name for a plugin that asks again', () => {
    const { meters, set } = setUp();
    const sink = new Notebook();
    const early = [meters.counter(labelled), meters.counter(labelled)];
    meters.connect(sink);
    const late = [set.of('p').counter(labelled), meters.histogram(timed), meters.histogram(timed)];
    const kinds = sink.opened.map(([kind]) => kind);
    assert.deepEqual(kinds, ['counter', 'histogram']);
    for (const measure of early) measure({ outcome: 'ok' }, 1);
    late[0]?.({ outcome: 'ok', api: 'a' }, 1);
    assert.equal(sink.measured.length, 3);
  });

  it('read the function that a gauge was given last, without opening it again', () => {
    const { meters } = setUp();
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
    const { meters } = setUp();
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
    const { meters } = setUp();
    const calls = meters.counter(labelled);
    const sink = new Notebook();
    meters.connect(sink);
    meters.connect(sink);
    calls({ outcome: 'ok' }, 1);
    assert.deepEqual([sink.opened.length, sink.measured.length], [1, 1]);
  });

  it('outlive a sink that throws, which is said once for each instrument until another one is connected', () => {
    const failed: [string, unknown][] = [];
    const set = new MeterRegistry(({ name }, error) => failed.push([name, error])).draft();
    set.commit();
    const meters = set.of('p');
    const boom = () => {
      throw 'boom';
    };
    const calls = meters.counter(labelled);
    const faulty = { counter: () => boom, histogram: boom, gauge: boom };
    meters.connect(faulty);
    const seconds = meters.histogram(timed);
    meters.gauge(depth, () => 1);
    for (let count = 0; count < 2; count++) {
      calls({ outcome: 'ok' }, 1);
      seconds({ api: 'a' }, 1);
    }
    assert.deepEqual(failed.splice(0), [
      ['call_seconds', 'boom'],
      ['queue', 'boom'],
      ['calls_total', 'boom'],
    ]);
    const sink = new Notebook();
    meters.connect(sink);
    calls({ outcome: 'ok' }, 2);
    assert.deepEqual([sink.measured, sink.read()], [[['counter', 'calls_total', { outcome: 'ok' }, 2]], { queue: 1 }]);
    meters.connect(faulty);
    calls({ outcome: 'ok' }, 3);
    const names = failed.map(([name]) => name);
    assert.deepEqual(names, ['call_seconds', 'queue', 'calls_total']);
  });

  it('hand on a copy: what a plugin does with its description later changes nothing', () => {
    const { meters } = setUp();
    const sink = new Notebook();
    meters.connect(sink);
    const spec = { name: 'call_seconds', help: 'Help', labels: ['api'], buckets: [1, 2] };
    meters.histogram(spec);
    spec.labels.push('client');
    spec.buckets.push(0);
    spec.help = '';
    assert.deepEqual(sink.opened, [
      ['histogram', instrument({ ...spec, help: 'Help', labels: ['api'], buckets: [1, 2] })],
    ]);
  });
});

describe('Meters of a set of plugins', () => {
  it('are not heard of before the set is in force, nor ever of one that never is', () => {
    const registry = new MeterRegistry();
    const sink = new Notebook();
    const never = registry.draft().of('p');
    never.connect(sink);
    never.counter(labelled)({ outcome: 'ok' }, 1);
    never.gauge(depth, () => 1);
    const set = registry.draft();
    const calls = set.of('p').counter({ ...labelled, labels: ['other'] });
    set.of('p').histogram({ name: 'queue', help: 'Seconds in it' });
    calls({ other: 'x' }, 1);
    assert.deepEqual([sink.opened, sink.measured], [[], []]);
    set.commit();
    calls({ other: 'x' }, 2);
    assert.deepEqual(sink.measured, [['counter', 'calls_total', { other: 'x' }, 2]]);
    const opened = sink.opened.map(([kind, { name }]) => [kind, name]);
    assert.deepEqual(opened, [
      ['counter', 'calls_total'],
      ['histogram', 'queue'],
    ]);
  });

  it('gauges are read of the set that is in force', () => {
    const registry = new MeterRegistry();
    const sink = new Notebook();
    const first = reading(registry, 'p', 1);
    first.of('p').connect(sink);
    first.of('p').gauge({ name: 'gone', help: 'Gone' }, () => 2);
    assert.deepEqual(sink.read(), { queue: 1, gone: 2 });
    const second = registry.draft();
    second.of('p').gauge(depth, () => 3);
    assert.deepEqual(sink.read(), { queue: 1, gone: 2 });
    second.commit();
    assert.deepEqual(sink.read(), { queue: 3, gone: 0 });
    // Requests that began before are still under way there.
    first.of('p').gauge(depth, () => 4);
    first.of('p').gauge({ name: 'latest', help: 'Too late' }, () => 5);
    assert.deepEqual(sink.read(), { queue: 3, gone: 0, latest: 0 });
  });
});

describe('the name of an instrument', () => {
  const taken = (name: string, held: string, plugin: string) =>
    new Error(`the name of the instrument "${name}" is taken by the ${held} of plugin "${plugin}"`);

  it('is one plugin’s in a set, whatever the kind', () => {
    const { meters, set } = setUp();
    meters.counter(labelled);
    meters.gauge(depth, () => 1);
    const other = set.of('other');
    const error = taken('calls_total', 'counter "calls_total"', 'p');
    assert.throws(() => other.counter(labelled), error);
    assert.throws(() => other.histogram(labelled), error);
    assert.throws(() => other.gauge({ name: 'calls_total', help: 'x' }, () => 2), error);
    assert.throws(() => other.gauge(depth, () => 2), taken('queue', 'gauge "queue"', 'p'));
    const sink = new Notebook();
    meters.connect(sink);
    assert.deepEqual([sink.read(), sink.opened.length], [{ queue: 1 }, 2]);
  });

  it('is for one kind with its labels and buckets', () => {
    const { meters } = setUp();
    meters.histogram({ ...timed, buckets: [1, 2] });
    const error = taken('call_seconds', 'histogram "call_seconds"', 'p');
    assert.throws(() => meters.histogram(timed), error);
    assert.throws(() => meters.histogram({ ...timed, labels: ['api', 'b'], buckets: [1, 2] }), error);
    assert.throws(() => meters.counter(timed), error);
    meters.histogram({ ...timed, buckets: [1, 2], help: 'Other words' });
  });

  it('is also that of the parts of a histogram', () => {
    for (const part of ['bucket', 'sum', 'count']) {
      const [first, second] = [setUp(), setUp()];
      const spec = { name: `call_seconds_${part}`, help: 'x' };
      first.meters.histogram(timed);
      const histogram = 'histogram "call_seconds"';
      for (const meters of [first.meters, first.set.of('other')])
        assert.throws(() => meters.counter(spec), taken(spec.name, histogram, 'p'));
      second.meters.gauge(spec, () => 1);
      assert.throws(() => second.meters.histogram(timed), taken(timed.name, `gauge "${spec.name}"`, 'p'));
    }
  });

  it('goes over to another plugin with a set that has no other use for it', () => {
    const registry = new MeterRegistry();
    const sink = new Notebook();
    reading(registry, 'p', 1).of('p').connect(sink);
    reading(registry, 'q', 2);
    assert.deepEqual([sink.read(), sink.opened.length], [{ queue: 2 }, 1]);
    const third = registry.draft().of('r');
    const error = new Error('the name of the instrument "queue" is taken until a restart by the gauge "queue"');
    for (const make of [third.counter, third.histogram]) assert.throws(() => make({ name: 'queue', help: 'x' }), error);
  });

  const faulty: [string, MeterSpec, string][] = [
    ['a name with a capital', { ...bare, name: 'Calls' }, 'the name of the instrument "Calls" is not in snake case'],
    ['a name with a line', { ...bare, name: 'a\nb' }, 'the name of the instrument "a\nb" is not in snake case'],
    ['no name', { ...bare, name: '' }, 'the name of the instrument "" is not in snake case'],
    ['no help', { ...bare, help: '' }, 'the instrument "events_total" has no help'],
    ['a label with a dash', { ...bare, labels: ['a-b'] }, 'the instrument "events_total" cannot have a label "a-b"'],
    ['the label le', { ...bare, labels: ['a', 'le'] }, 'the instrument "events_total" cannot have a label "le"'],
    ['a label twice', { ...bare, labels: ['a', 'b', 'a'] }, 'the instrument "events_total" cannot have a label "a"'],
    ['buckets that fall', { ...bare, buckets: [2, 1] }, 'the instrument "events_total" has buckets that do not ascend'],
    [
      'a bucket NaN',
      { ...bare, buckets: [Number.NaN] },
      'the instrument "events_total" has buckets that do not ascend',
    ],
  ];
  for (const [what, spec, message] of faulty) {
    it(`${what}: an error before anybody measures`, () => {
      assert.throws(() => setUp().meters.counter(spec), new Error(message));
      assert.throws(() => setUp().meters.histogram(spec), new Error(message));
    });
  }

  it('labels of a gauge: an error', () => {
    const gauge = setUp().meters.gauge as (spec: MeterSpec, read: () => number) => void;
    const error = new Error('the instrument "calls_total" is a gauge, which has no labels');
    assert.throws(() => gauge(labelled, () => 1), error);
  });
});
