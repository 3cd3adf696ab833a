/** What is counted or measured, in the terms of Prometheus and OpenTelemetry. */
export interface MeterSpec<L extends string = string> {
  /** Snake case, with the unit and without a prefix: `upstream_call_seconds`, `payments_total`. */
  readonly name: string;
  readonly help: string;
  /** Names of the labels, in snake case. What they hold must be of bounded variety, never of a client's choice. */
  readonly labels?: readonly L[];
  /** Of a histogram: upper bounds of its buckets, ascending; by default some that suit calls, in seconds. */
  readonly buckets?: readonly number[];
}

export type Labels<L extends string = string> = Readonly<Record<L, string>>;

/** Adds to a counter, or observes one value of a histogram. */
export type Measure<L extends string = string> = (labels: Labels<L>, value: number) => void;

/** What a plugin measures with. An instrument that it asks for again, also after a reload of the config, is the same one. */
export interface Meters {
  /** @throws Error when the name is taken, or a part of the description is not as it must be. */
  counter<L extends string = never>(spec: MeterSpec<L>): Measure<L>;
  /** For seconds, unless it has buckets of its own. @throws Error as `counter` does. */
  histogram<L extends string = never>(spec: MeterSpec<L>): Measure<L>;
  /**
   * @param read replaces the function that the same gauge of this plugin had before.
   * @throws Error as `counter` does.
   */
  gauge(spec: MeterSpec<never>, read: () => number): void;
  /** Connects every instrument, present and future; the sink before it hears no more. */
  connect(sink: MeterSink): void;
}

/** An instrument as a sink gets it. */
export interface Instrument extends MeterSpec {
  /** Most combinations of label values that are kept apart. */
  readonly series: number;
}

/** Where measurements go: whoever exports metrics connects one. */
export interface MeterSink {
  counter(instrument: Instrument): Measure;
  histogram(instrument: Instrument): Measure;
  /** @param read the present value, asked for at each export. */
  gauge(instrument: Instrument, read: () => number): void;
}

type Kind = 'counter' | 'histogram' | 'gauge';

interface Described {
  readonly kind: Kind;
  readonly instrument: Instrument;
}

/** One that has been in force, and keeps its kind and labels until the end. */
interface Exported extends Described {
  measure: Measure;
}

/** One of a set of plugins. */
interface Meter extends Described {
  readonly plugin: string;
  read: () => number;
  /** Absent while the set is not in force. */
  exported?: Exported;
}

const unheard: Measure = () => undefined;
const nothing = () => 0;

/** Combinations of label values that an operator's plugin may have for one instrument. */
export const MOST_SERIES = 1000;

/** What Prometheus's text format makes of a histogram, besides its name. */
const PARTS: Readonly<Record<Kind, readonly string[]>> = {
  counter: [],
  gauge: [],
  histogram: ['_bucket', '_sum', '_count'],
};

/** All names of an instrument in the text format. */
function namesOf({ kind, instrument: { name } }: Described): string[] {
  return [name, ...PARTS[kind].map((part) => name + part)];
}

/** The instruments of one service. Without a sink measuring costs a call of an empty function. */
export class MeterRegistry {
  readonly #exported = new Set<Exported>();
  readonly #byName = new Map<string, Exported>();
  #inForce: MeterSet | undefined;
  #sink: MeterSink | undefined;

  /** The instruments of one set of plugins. */
  draft(): MeterSet {
    const set: MeterSet = new MeterSet({
      known: (name) => this.#byName.get(name),
      export: (meter) => this.#byName.get(meter.instrument.name) ?? this.#export(meter),
      commit: () => {
        this.#inForce = set;
      },
      connect: (sink) => this.#connect(sink),
    });
    return set;
  }

  #export({ kind, instrument }: Meter): Exported {
    const exported = { kind, instrument, measure: unheard };
    this.#exported.add(exported);
    for (const name of namesOf(exported)) this.#byName.set(name, exported);
    this.#open(exported);
    return exported;
  }

  #connect(sink: MeterSink): void {
    if (this.#sink === sink) return;
    this.#sink = sink;
    for (const exported of this.#exported) this.#open(exported);
  }

  #open(exported: Exported): void {
    const { kind, instrument } = exported;
    if (this.#sink === undefined) return;
    if (kind !== 'gauge') exported.measure = this.#sink[kind](instrument);
    else this.#sink.gauge(instrument, () => (this.#inForce === undefined ? 0 : this.#inForce.read(instrument.name)));
  }
}

interface Registry {
  known(name: string): Exported | undefined;
  export(meter: Meter): Exported;
  commit(): void;
  connect(sink: MeterSink): void;
}

/** The instruments of one set of plugins, which may never come into force: until `commit` nobody hears of them. */
export class MeterSet {
  readonly #registry: Registry;
  readonly #meters = new Map<string, Meter>();
  /** Whose each exported name is. */
  readonly #taken = new Map<string, Meter>();
  #committed = false;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /**
   * The instruments of one plugin of the set.
   * @param series most combinations of label values of each.
   */
  of(plugin: string, series = MOST_SERIES): Meters {
    const ask = (kind: Kind, spec: MeterSpec) =>
      this.#ask({ kind, plugin, instrument: instrumentOf(kind, spec, series), read: nothing });
    const measuring = (kind: 'counter' | 'histogram', spec: MeterSpec): Measure => {
      const meter = ask(kind, spec);
      return (labels, value) => meter.exported?.measure(labels, value);
    };
    return {
      counter: (spec) => measuring('counter', spec),
      histogram: (spec) => measuring('histogram', spec),
      gauge: (spec, read) => {
        ask('gauge', spec).read = read;
      },
      connect: (sink) => this.#registry.connect(sink),
    };
  }

  /** Has the set take the place of the one before: gauges are read here from now on. */
  commit(): void {
    this.#committed = true;
    for (const meter of this.#meters.values()) meter.exported = this.#registry.export(meter);
    this.#registry.commit();
  }

  /** The present value of a gauge; of one that is not here there is nothing to read. */
  read(name: string): number {
    const meter = this.#meters.get(name);
    return meter === undefined ? 0 : meter.read();
  }

  #ask(asked: Meter): Meter {
    const { name } = asked.instrument;
    const names = namesOf(asked);
    for (const held of names.flatMap((each) => this.#taken.get(each) ?? [])) {
      if (held.plugin !== asked.plugin || !isSame(held, asked))
        throw new Error(
          `the name of the instrument "${name}" is taken by ${described(held)} of plugin "${held.plugin}"`,
        );
    }
    for (const known of names.flatMap((each) => this.#registry.known(each) ?? [])) {
      if (!isSame(known, asked))
        throw new Error(`the name of the instrument "${name}" is taken until a restart by ${described(known)}`);
    }
    return this.#meters.get(name) ?? this.#add(asked, names);
  }

  #add(meter: Meter, names: readonly string[]): Meter {
    this.#meters.set(meter.instrument.name, meter);
    for (const name of names) this.#taken.set(name, meter);
    if (this.#committed) meter.exported = this.#registry.export(meter);
    return meter;
  }
}

function isSame(one: Described, other: Described): boolean {
  return described(one) === described(other);
}

function described({ kind, instrument: { name, labels = [], buckets = [] } }: Described): string {
  const parts = { labels, buckets };
  const told = Object.entries(parts).flatMap(([part, values]) =>
    values.length === 0 ? [] : `${part} ${values.join(', ')}`,
  );
  return `the ${kind} "${name}"${told.length === 0 ? '' : ` with the ${told.join(' and the ')}`}`;
}

/** A copy that nobody can change. @throws Error that says what is wrong with it. */
function instrumentOf(kind: Kind, { name, help, labels = [], buckets }: MeterSpec, series: number): Instrument {
  const wrong = (what: string) => new Error(`the instrument "${name}" ${what}`);
  if (!isSnakeCase(name)) throw new Error(`the name of the instrument "${name}" is not in snake case`);
  if (typeof help !== 'string' || help === '') throw wrong('has no help');
  const odd = labels.find((label, i) => !isSnakeCase(label) || label === 'le' || labels.indexOf(label) < i);
  if (odd !== undefined) throw wrong(`cannot have a label "${odd}"`);
  if (kind === 'gauge' && labels.length > 0) throw wrong('is a gauge, which has no labels');
  if (buckets?.some((bound, i) => !Number.isFinite(bound) || bound <= (buckets[i - 1] ?? Number.NEGATIVE_INFINITY))) {
    throw wrong('has buckets that do not ascend');
  }
  const copy = { name, help, labels: Object.freeze([...labels]), series };
  return Object.freeze(buckets === undefined ? copy : { ...copy, buckets: Object.freeze([...buckets]) });
}

function isSnakeCase(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z][a-z0-9_]*$/.test(name);
}
