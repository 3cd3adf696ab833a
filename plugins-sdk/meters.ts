/** What is counted or measured, in the terms of Prometheus and OpenTelemetry. */
export interface MeterSpec<L extends string = string> {
  /** Snake case, with the unit and without a prefix: `upstream_call_seconds`, `payments_total`. */
  readonly name: string;
  readonly help: string;
  /** Names of the labels, in snake case. Values must be of bounded variety, never a client's choice. */
  readonly labels?: readonly L[];
  /** Of a counter: values of labels that are known beforehand. Their series are there at 0, so that their first event is an increase. */
  readonly initial?: readonly Readonly<Record<L, string>>[];
  /** Of a histogram: upper bounds of its buckets, ascending; by default some that suit calls, in seconds. */
  readonly buckets?: readonly number[];
  /** Of a gauge: what the values of several workers make together; default their sum. */
  readonly across?: 'sum' | 'min' | 'max' | 'average';
}

/** An instrument as a sink gets it. */
export interface Instrument extends Omit<MeterSpec, 'initial'> {
  /** Most combinations of label values that are kept apart. */
  readonly series: number;
}

/** Label values by name. */
export type Labels<L extends string = string> = Readonly<Record<L, string>>;

/** Adds to a counter. @param value default 1. */
export type Count<L extends string = string> = (labels: Labels<L>, value?: number) => void;

/** Observes one value of a histogram, or adds to a counter. */
export type Measure<L extends string = string> = (labels: Labels<L>, value: number) => void;

/** Makes instruments. An instrument that it asks for again, also after a reload of the config, is the same one. */
export interface Meters {
  /** @throws Error when the name is taken, or a part of the description is not as it must be. */
  counter<L extends string = never>(spec: MeterSpec<L>): Count<L>;
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

/** Where measurements go. When it throws, the measurement is lost. */
export interface MeterSink {
  counter(instrument: Instrument): Measure;
  histogram(instrument: Instrument): Measure;
  /** @param read the present value, asked for at each export. */
  gauge(instrument: Instrument, read: () => number): void;
}
