/** The description of a metric, in the terms of Prometheus and OpenTelemetry. */
export interface MeterSpec<L extends string = string> {
  /** Snake case, with the unit and without a prefix: `upstream_call_seconds`, `payments_total`. */
  readonly name: string;
  readonly help: string;
  /** Names of the labels, in snake case. Their values must be few, and never a client's choice. */
  readonly labels?: readonly L[];
  /** For a counter: known combinations of label values. Their series start at 0, so that the first event is an increase. */
  readonly initial?: readonly Readonly<Record<L, string>>[];
  /** For a histogram: upper bounds of its buckets, ascending. The default suits the duration of calls, in seconds. */
  readonly buckets?: readonly number[];
  /** For a gauge: how the values of several workers are combined; default `sum`. */
  readonly across?: 'sum' | 'min' | 'max' | 'average';
}

/** A metric's description as a sink gets it. */
export interface Instrument extends Omit<MeterSpec, 'initial'> {
  /** Most combinations of label values that have their own series. */
  readonly series: number;
}

/** Label values by name. */
export type Labels<L extends string = string> = Readonly<Record<L, string>>;

/** Adds to a counter. @param value default 1. */
export type Count<L extends string = string> = (labels: Labels<L>, value?: number) => void;

/** Observes one value of a histogram, or adds to a counter. */
export type Measure<L extends string = string> = (labels: Labels<L>, value: number) => void;

/** Makes a plugin's instruments. The same description gives the same instrument again, also after a reload of the config. */
export interface Meters {
  /** Makes a counter. @throws Error if the name is taken or the description is invalid. */
  counter<L extends string = never>(spec: MeterSpec<L>): Count<L>;
  /** Makes a histogram, of seconds unless it has other buckets. @throws Error as `counter` does. */
  histogram<L extends string = never>(spec: MeterSpec<L>): Measure<L>;
  /**
   * Makes a gauge.
   * @param read returns the present value; replaces the function that this plugin's gauge had before.
   * @throws Error as `counter` does.
   */
  gauge(spec: MeterSpec<never>, read: () => number): void;
  /** Connects all instruments, present and future, to a sink. An earlier sink gets nothing more. */
  connect(sink: MeterSink): void;
}

/** A receiver of measurements. If it throws, the measurement is lost. */
export interface MeterSink {
  counter(instrument: Instrument): Measure;
  histogram(instrument: Instrument): Measure;
  /** Adds a gauge. @param read returns the present value; called at each export. */
  gauge(instrument: Instrument, read: () => number): void;
}
