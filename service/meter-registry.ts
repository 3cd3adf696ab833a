import type { Instrument, Labels, Measure, MeterSink, MeterSpec, Meters } from '../plugins-sdk/meters.ts';

const ACROSS: readonly string[] = ['sum', 'min', 'max', 'average'];

type Kind = 'counter' | 'histogram' | 'gauge';

interface Described {
  /** Of a set of plugins. */
  readonly plugin?: string;
  readonly kind: Kind;
  readonly instrument: Instrument;
}

/** All names of an instrument in Prometheus's text format. */
function namesOf({ kind, instrument: { name } }: Described): string[] {
  return kind === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

/** What has a name of an instrument already, and is another one. */
function holderOf<T extends Described>(asked: T, held: Iterable<T>): T | undefined {
  const names = namesOf(asked);
  const form = ({ kind, plugin, instrument: { name, labels, buckets } }: Described) =>
    JSON.stringify([kind, plugin, name, labels, buckets]);
  return [...held].find((one) => namesOf(one).some((name) => names.includes(name)) && form(one) !== form(asked));
}

/** A copy that nobody can change. @throws Error that says what is wrong with it. */
function instrumentOf(kind: Kind, { name, help, labels = [], ...rest }: MeterSpec, series: number): Instrument {
  const { buckets, across } = rest;
  const wrong = (what: string) => new Error(`the instrument "${name}" ${what}`);
  if (!isSnakeCase(name)) throw new Error(`the name of the instrument "${name}" is not in snake case`);
  if (typeof help !== 'string' || help === '') throw wrong('has no help');
  const odd = labels.find((label, i) => !isSnakeCase(label) || label === 'le' || labels.indexOf(label) < i);
  if (odd !== undefined) throw wrong(`cannot have a label "${odd}"`);
  if (kind === 'gauge' && labels.length > 0) throw wrong('is a gauge, which has no labels');
  if (buckets?.some((bound, i) => !Number.isFinite(bound) || bound <= (buckets[i - 1] ?? Number.NEGATIVE_INFINITY))) {
    throw wrong('has buckets that do not ascend');
  }
  if (across !== undefined && !ACROSS.includes(across)) throw wrong(`has no "across" of ${ACROSS.join(', ')}`);
  const copy = { name, help, labels: Object.freeze([...labels]), series, ...(across && { across }) };
  return Object.freeze(buckets === undefined ? copy : { ...copy, buckets: Object.freeze([...buckets]) });
}

function isSnakeCase(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z][a-z0-9_]*$/.test(name);
}

/** One that has been in force, and keeps its kind and labels until the end. */
interface Exported extends Described {
  /** Never throws; absent without a sink. */
  measure?: Measure | undefined;
}

/** One of a set of plugins. */
interface Meter extends Described {
  readonly plugin: string;
  readonly initial: Labels[];
  read: () => number;
}

/** Told when a sink fails: once for each of its instruments. */
export type SinkFailed = (instrument: Instrument, error: unknown) => void;

/** What built-in plugins measure is in the config. */
export const UNBOUNDED = Number.POSITIVE_INFINITY;

/** The instruments of one set of plugins, which may never come into force: until `commit` nobody hears of them. */
export type MeterSet = ReturnType<MeterRegistry['draft']>;

/**
 * The instruments of one service, each made once. A sink that throws loses what it was to measure, and nothing else: those who
 * measure are in the middle of a request.
 */
export class MeterRegistry {
  readonly #exported = new Map<string, Exported>();
  /** Whose gauges are read. */
  #inForce: ReadonlyMap<string, Meter> = new Map();
  #sink: MeterSink | undefined;
  readonly #sinkFailed: SinkFailed;

  constructor(sinkFailed: SinkFailed = () => undefined) {
    this.#sinkFailed = sinkFailed;
  }

  draft() {
    const meters = new Map<string, Meter>();
    let isCommitted = false;
    const make = (plugin: string, series: number, kind: Kind, { initial = [], ...spec }: MeterSpec, read = () => 0) => {
      const instrument = instrumentOf(kind, spec, series);
      const { name } = instrument;
      this.#checkName({ plugin, kind, instrument }, meters.values());
      const meter: Meter = meters.get(name) ?? { plugin, kind, instrument, initial: [], read };
      meter.initial.push(...initial);
      meter.read = read;
      meters.set(name, meter);
      if (isCommitted) this.#export(meter);
      return (labels: Labels, value = 1) => {
        if (isCommitted) this.#exported.get(name)?.measure?.(labels, value);
      };
    };
    return {
      /** The instruments of one plugin of the set, each with so many combinations of label values. */
      of: (plugin: string, series = 1000): Meters => ({
        counter: (spec) => make(plugin, series, 'counter', spec),
        histogram: (spec) => make(plugin, series, 'histogram', spec),
        gauge: (spec, read) => void make(plugin, series, 'gauge', spec, read),
        connect: (sink) => this.connect(sink),
      }),
      /** Has the set take the place of the one before: gauges are read here from now on. */
      commit: (): void => {
        isCommitted = true;
        for (const meter of meters.values()) this.#export(meter);
        this.#inForce = meters;
      },
    };
  }

  connect(sink: MeterSink): void {
    if (this.#sink === sink) return;
    this.#sink = sink;
    for (const exported of this.#exported.values()) this.#open(exported);
  }

  /** @throws Error where another instrument of the set, or one that has been in force, has a name of this one. */
  #checkName(asked: Described, set: Iterable<Described>): void {
    const taken = `the name of the instrument "${asked.instrument.name}" is taken`;
    const held = holderOf(asked, set);
    if (held !== undefined)
      throw new Error(`${taken} by the ${held.kind} "${held.instrument.name}" of plugin "${held.plugin}"`);
    const known = holderOf({ kind: asked.kind, instrument: asked.instrument }, this.#exported.values());
    if (known !== undefined)
      throw new Error(`${taken} until a restart by the ${known.kind} "${known.instrument.name}"`);
  }

  /** Has it measure as the instrument that is in force already, or as one that is so from now on. */
  #export({ kind, instrument, initial }: Meter): void {
    const exported: Exported = this.#exported.get(instrument.name) ?? { kind, instrument };
    if (!this.#exported.has(instrument.name)) this.#open(exported);
    this.#exported.set(instrument.name, exported);
    for (const labels of initial) exported.measure?.(labels, 0);
  }

  #open(exported: Exported): void {
    const { kind, instrument } = exported;
    const sink = this.#sink;
    if (sink === undefined) return;
    let isFaulty = false;
    const guarded = <T>(work: () => T): T | undefined => {
      try {
        return work();
      } catch (error) {
        if (!isFaulty) this.#sinkFailed(instrument, error);
        isFaulty = true;
        return undefined;
      }
    };
    exported.measure = guarded((): Measure | undefined => {
      if (kind === 'gauge') return void sink.gauge(instrument, () => this.#inForce.get(instrument.name)?.read() ?? 0);
      const measure = sink[kind](instrument);
      return (labels, value) => guarded(() => measure(labels, value));
    });
  }
}
