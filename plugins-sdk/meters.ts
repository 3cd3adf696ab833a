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

/**
 * The instruments of one service. Without a sink measuring costs a call of an empty function. An instrument that is
 * asked for again, after a reload of the config, is the same one.
 */
export class Meters {
  readonly #counters = new Map<string, Meter & { readonly spec: MeterSpec }>();
  readonly #histograms = new Map<string, Meter & { readonly spec: MeterSpec }>();
  readonly #gauges = new Map<string, { readonly spec: MeterSpec; read: () => number }>();
  #sink: MeterSink | undefined;

  counter<L extends string = never>(spec: MeterSpec<L>): Measure<L> {
    return this.#measuring(this.#counters, spec, (sink) => sink.counter(spec));
  }

  /** For seconds. */
  histogram<L extends string = never>(spec: MeterSpec<L>): Measure<L> {
    return this.#measuring(this.#histograms, spec, (sink) => sink.histogram(spec));
  }

  /** @param read replaces the function that the same gauge had before. */
  gauge(spec: MeterSpec<never>, read: () => number): void {
    const known = this.#gauges.get(spec.name);
    if (known !== undefined) {
      known.read = read;
      return;
    }
    const gauge = { spec, read };
    this.#gauges.set(spec.name, gauge);
    this.#sink?.gauge(spec, () => gauge.read());
  }

  /** Connects every instrument, present and future; the sink before it hears no more. */
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
