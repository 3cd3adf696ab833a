import type { Instrument, Labels, Measure, MeterSink, MeterSpec, Meters } from '../plugins-sdk/meters.ts';

const ACROSS: readonly string[] = ['sum', 'min', 'max', 'average'];

type Kind = 'counter' | 'histogram' | 'gauge';

interface Described {
  /** The plugin that made it; absent for an exported instrument, which outlives its plugin. */
  readonly plugin?: string;
  readonly kind: Kind;
  readonly instrument: Instrument;
}

/** Returns all names that an instrument takes in Prometheus's text format. */
function namesOf({ kind, instrument: { name } }: Described): string[] {
  return kind === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

/** Finds an instrument that has one of the same names and differs. */
function holderOf<T extends Described>(asked: T, held: Iterable<T>): T | undefined {
  const names = namesOf(asked);
  const form = ({ kind, plugin, instrument: { name, labels, buckets } }: Described) =>
    JSON.stringify([kind, plugin, name, labels, buckets]);
  return [...held].find((one) => namesOf(one).some((name) => names.includes(name)) && form(one) !== form(asked));
}

/** Returns a frozen copy of a checked instrument. @throws Error that says what is wrong with it. */
function instrumentOf(kind: Kind, { name, help, labels = [], ...rest }: MeterSpec, series: number): Instrument {
  const { buckets, across } = rest;
  const wrong = (what: string) => new Error(`the instrument "${name}" ${what}`);
  if (!isSnakeCase(name)) throw new Error(`the name of the instrument "${name}" is not in snake case`);
  if (typeof help !== 'string' || help === '') throw wrong('has no help');
  const odd = labels.find((label, i) => !isSnakeCase(label) || label === 'le' || labels.indexOf(label) < i);
  if (odd !== undefined) throw wrong(`cannot have a label "${odd}"`);
  if (kind === 'gauge' && labels.length > 0) throw wrong('is a gauge, which has no labels');
  if (buckets?.some((bound, i) => !Number.isFinite(bound) || bound <= (buckets[i - 1] ?? Number.NEGATIVE_INFINITY)))
    throw wrong('has buckets that do not ascend');
  if (across !== undefined && !ACROSS.includes(across)) throw wrong(`has no "across" of ${ACROSS.join(', ')}`);
  const copy = { name, help, labels: Object.freeze([...labels]), series, ...(across && { across }) };
  return Object.freeze(buckets === undefined ? copy : { ...copy, buckets: Object.freeze([...buckets]) });
}

function isSnakeCase(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z][a-z0-9_]*$/.test(name);
}

/** An instrument that has been in force. It keeps its kind and labels until the service ends. */
interface Exported extends Described {
  /** Passes a measurement to the sink; never throws. Absent without a sink. */
  readonly measure?: Measure | undefined;
}

/** An instrument of a set of plugins. */
interface Meter extends Described {
  readonly plugin: string;
  readonly initial: readonly Labels[];
  readonly read: () => number;
}

/** Called when a sink fails, once for each instrument. */
type SinkFailed = (instrument: Instrument, error: unknown) => void;

/** The number of series for built-in plugins: the config bounds their label values already. */
export const UNBOUNDED = Number.POSITIVE_INFINITY;

/** The instruments of one set of plugins. Until `commit` nothing is exported, because the set may never come into force. */
export type MeterSet = ReturnType<MeterRegistry['draft']>;

/**
 * The instruments of one service, each made once. If a sink throws, only its own measurement is lost, because plugins
 * measure in the middle of requests.
 */
export class MeterRegistry {
  readonly #exported = new Map<string, Exported>();
  /** The instruments of the plugins in force, by name: gauges read these. */
  #inForce: ReadonlyMap<string, Meter> = new Map();
  #sink: MeterSink | undefined;
  readonly #sinkFailed: SinkFailed;

  constructor(sinkFailed: SinkFailed = () => undefined) {
    this.#sinkFailed = sinkFailed;
  }

  /** Begins the instruments of one set of plugins. */
  draft() {
    const meters = new Map<string, Meter>();
    let isCommitted = false;
    const make = (plugin: string, series: number, kind: Kind, { initial = [], ...spec }: MeterSpec, read = () => 0) => {
      const instrument = instrumentOf(kind, spec, series);
      const { name } = instrument;
      this.#checkName({ plugin, kind, instrument }, meters.values());
      const before = meters.get(name)?.initial ?? [];
      const meter = { plugin, kind, instrument, initial: [...before, ...initial], read };
      meters.set(name, meter);
      if (isCommitted) this.#export(meter);
      return (labels: Labels, value = 1) => {
        if (isCommitted) this.#exported.get(name)?.measure?.(labels, value);
      };
    };
    return {
      /** Returns the meters of one plugin. @param series the most combinations of label values of each instrument. */
      of: (plugin: string, series = 1000): Meters => ({
        counter: (spec) => make(plugin, series, 'counter', spec),
        histogram: (spec) => make(plugin, series, 'histogram', spec),
        gauge: (spec, read) => void make(plugin, series, 'gauge', spec, read),
        connect: (sink) => this.connect(sink),
      }),
      /** Replaces the set that was in force: gauges read the values of this one. */
      commit: (): void => {
        isCommitted = true;
        for (const meter of meters.values()) this.#export(meter);
        this.#inForce = meters;
      },
    };
  }

  /** Exports all instruments to a sink, in place of the sink before it. */
  connect(sink: MeterSink): void {
    if (this.#sink === sink) return;
    this.#sink = sink;
    for (const [name, exported] of this.#exported) this.#exported.set(name, this.#opened(exported));
  }

  /** Checks an instrument's names. @throws Error when another instrument of the set, or one that has been in force, has one. */
  #checkName(asked: Described, set: Iterable<Described>): void {
    const taken = `the name of the instrument "${asked.instrument.name}" is taken`;
    const held = holderOf(asked, set);
    if (held !== undefined)
      throw new Error(`${taken} by the ${held.kind} "${held.instrument.name}" of plugin "${held.plugin}"`);
    const known = holderOf({ kind: asked.kind, instrument: asked.instrument }, this.#exported.values());
    if (known !== undefined)
      throw new Error(`${taken} until a restart by the ${known.kind} "${known.instrument.name}"`);
  }

  /** Connects an instrument to the exported one of its name, or exports it if there is none. */
  #export({ kind, instrument, initial }: Meter): void {
    const exported = this.#exported.get(instrument.name) ?? this.#opened({ kind, instrument });
    this.#exported.set(instrument.name, exported);
    for (const labels of initial) exported.measure?.(labels, 0);
  }

  /** Returns an exported instrument that passes its measurements to the sink. */
  #opened({ kind, instrument }: Described): Exported {
    const sink = this.#sink;
    if (sink === undefined) return { kind, instrument };
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
    const measure = guarded((): Measure | undefined => {
      if (kind === 'gauge') return void sink.gauge(instrument, () => this.#inForce.get(instrument.name)?.read() ?? 0);
      return sink[kind](instrument);
    });
    return { kind, instrument, measure: measure && ((labels, value) => guarded(() => measure(labels, value))) };
  }
}
