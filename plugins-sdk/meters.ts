/** What is counted or measured, in the terms of Prometheus and OpenTelemetry. */
export interface MeterSpec<L extends string = string> {
  /** Snake case, with the unit and without a prefix: `upstream_call_seconds`, `payments_total`. */
  readonly name: string;
  readonly help: string;
  /** Names of the labels. What they hold must be of bounded variety, never of a client's choice. */
  readonly labels?: readonly L[];
}

export type Labels<L extends string = string> = Readonly<Record<L, string>>;

/** Adds to a counter, or observes one value of a histogram. */
export type Measure<L extends string = string> = (labels: Labels<L>, value: number) => void;

/** Where measurements go: whoever exports metrics connects one. */
export interface MeterSink {
  counter(spec: MeterSpec): Measure;
  /** Its values are seconds. */
  histogram(spec: MeterSpec): Measure;
  /** @param read the present value, asked for at each export. */
  gauge(spec: MeterSpec, read: () => number): void;
}

interface Meter {
  measure: Measure;
}

const unheard: Measure = () => undefined;

/** What a plugin measures with. An instrument that is asked for again, after a reload of the config, is the same one. */
export interface Meters {
  counter<L extends string = never>(spec: MeterSpec<L>): Measure<L>;
  /** For seconds. */
  histogram<L extends string = never>(spec: MeterSpec<L>): Measure<L>;
  /** @param read replaces the function that the same gauge had before. */
  gauge(spec: MeterSpec<never>, read: () => number): void;
  /** Connects every instrument, present and future; the sink before it hears no more. */
  connect(sink: MeterSink): void;
}

interface Gauge {
  readonly spec: MeterSpec<never>;
  read: () => number;
}

const nothing = () => 0;

/**
 * The instruments of one service. Without a sink measuring costs a call of an empty function.
 */
export class MeterRegistry implements Meters {
  readonly #counters = new Map<string, Meter & { readonly spec: MeterSpec }>();
  readonly #histograms = new Map<string, Meter & { readonly spec: MeterSpec }>();
  readonly #gauges = new Map<string, Gauge>();
  /** The gauges of the set of plugins that is in force. */
  #inForce: ReadonlyMap<string, Gauge> | undefined;
  #sink: MeterSink | undefined;

  counter<L extends string = never>(spec: MeterSpec<L>): Measure<L> {
    return this.#measuring(this.#counters, spec, (sink) => sink.counter(spec));
  }

  histogram<L extends string = never>(spec: MeterSpec<L>): Measure<L> {
    return this.#measuring(this.#histograms, spec, (sink) => sink.histogram(spec));
  }

  gauge(spec: MeterSpec<never>, read: () => number): void {
    const known = this.#gauges.get(spec.name);
    if (known !== undefined) {
      known.read = read;
      return;
    }
    const gauge = { spec, read };
    this.#sink?.gauge(spec, () => gauge.read());
    this.#gauges.set(spec.name, gauge);
  }

  /** The same instruments for one set of plugins, which may never come into force: until `commit` its gauges wait. */
  draft(): Meters & { commit(): void } {
    const gauges = new Map<string, Gauge>();
    return {
      counter: (spec) => this.counter(spec),
      histogram: (spec) => this.histogram(spec),
      connect: (sink) => this.connect(sink),
      gauge: (spec, read) => {
        // Known from now on, so that a name that is taken shows at once.
        if (!this.#gauges.has(spec.name)) this.gauge(spec, nothing);
        gauges.set(spec.name, { spec, read });
        if (this.#inForce === gauges) this.gauge(spec, read);
      },
      commit: () => {
        this.#inForce = gauges;
        for (const { spec, read } of gauges.values()) this.gauge(spec, read);
        // Of what is gone there is nothing to read.
        for (const [name, gauge] of this.#gauges) if (!gauges.has(name)) gauge.read = nothing;
      },
    };
  }

  connect(sink: MeterSink): void {
    if (this.#sink === sink) return;
    this.#sink = sink;
    for (const meter of this.#counters.values()) meter.measure = sink.counter(meter.spec);
    for (const meter of this.#histograms.values()) meter.measure = sink.histogram(meter.spec);
    for (const gauge of this.#gauges.values()) sink.gauge(gauge.spec, () => gauge.read());
  }

  #measuring<L extends string>(
    meters: Map<string, Meter & { readonly spec: MeterSpec }>,
    spec: MeterSpec<L>,
    open: (sink: MeterSink) => Measure,
  ): Measure<L> {
    const meter = meters.get(spec.name) ?? { spec, measure: this.#sink === undefined ? unheard : open(this.#sink) };
    meters.set(spec.name, meter);
    return (labels, value) => meter.measure(labels, value);
  }
}
