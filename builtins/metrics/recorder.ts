import { AggregatorRegistry, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { errorText } from '../../lib/text.ts';
import type { Log, Services } from '../../plugins-sdk/index.ts';
import type { Instrument, Labels, Measure, MeterSink } from '../../plugins-sdk/observe.ts';
import type { Workers } from '../../plugins-sdk/state.ts';
import { processMetrics } from './process.ts';

const PREFIX = 'signed_data_proxy_';
/** The topic under which workers exchange their measurements. */
const TOPIC = 'metrics';

/** Default buckets, in seconds, for a whole request or a call to another service. */
const CALL_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The most characters of a label's value; names from a config are shorter. */
const LONGEST_VALUE = 200;

const UNMEASURED = 'an instrument cannot be measured';
const CROWDED = 'an instrument has more series than are kept: the rest is under "other"';

/** Requires a number. One NaN or infinite value would spoil a sum for good. */
function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new Error(`measured ${typeof value === 'number' ? value : `a ${typeof value}`}`);
}

/** Records measurements in the form that Prometheus reads. The service logs what a measure throws, once for each instrument. */
export class Recorder implements MeterSink {
  readonly #registry: Registry;
  readonly #log: Log;
  /** Mistakes that were logged already. */
  readonly #told = new Set<string>();
  readonly #workers: Workers | undefined;

  /** @param workers the other workers, whose measurements are added. */
  constructor({ log, version, workers }: Pick<Services, 'log' | 'version' | 'workers'>) {
    this.#log = log;
    this.#registry = Registry.merge([processMetrics(version)]);
    this.#workers = workers;
    workers?.offer(TOPIC, () => this.#values());
  }

  /** Returns all measurements in Prometheus's text format, version 0.0.4. */
  async text(): Promise<string> {
    if (this.#workers === undefined) return this.#registry.metrics();
    const measured = await this.#workers.gather(TOPIC);
    return AggregatorRegistry.aggregate(measured.filter(Array.isArray)).metrics();
  }

  counter(instrument: Instrument): Measure {
    const counter = new Counter({ ...this.#described(instrument), labelNames: instrument.labels ?? [] });
    const bounded = this.#bounded(instrument);
    return (labels, value) => counter.inc(bounded(labels), finite(value));
  }

  histogram(instrument: Instrument): Measure {
    const { labels: labelNames = [], buckets = CALL_BUCKETS } = instrument;
    const histogram = new Histogram({ ...this.#described(instrument), labelNames, buckets: [...buckets] });
    const bounded = this.#bounded(instrument);
    return (labels, value) => histogram.observe(bounded(labels), finite(value));
  }

  gauge(instrument: Instrument, read: () => number): void {
    const present = () => {
      try {
        const value = read();
        if (typeof value === 'number') return value;
        throw new Error(`reads a ${typeof value}`);
      } catch (error) {
        this.#tell(UNMEASURED, instrument, { error: errorText(error) });
        return Number.NaN;
      }
    };
    const { across: aggregator = 'sum' } = instrument;
    const gauge: Gauge = new Gauge({ ...this.#described(instrument), aggregator, collect: () => gauge.set(present()) });
  }

  /** Returns all values as JSON, without NaN of gauges that cannot be read: NaN would spoil a sum. */
  async #values(): Promise<object[]> {
    const metrics = await this.#registry.getMetricsAsJSON();
    return metrics.map((metric) => ({ ...metric, values: metric.values.filter(({ value }) => !Number.isNaN(value)) }));
  }

  #described({ name, help }: Instrument) {
    return { name: PREFIX + name, help, registers: [this.#registry] };
  }

  /** Copies the labels, since they are kept. Beyond the instrument's limit of series, each value becomes `other`. */
  #bounded(instrument: Instrument): (labels: Labels) => Labels {
    const { labels: names = [], series } = instrument;
    if (names.length === 0 || series === Number.POSITIVE_INFINITY) return (labels) => ({ ...labels });
    const known = new Set<string>();
    const other = Object.fromEntries(names.map((name) => [name, 'other']));
    return (labels) => {
      const texts = Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
      const key = JSON.stringify(names.map((name) => texts[name]));
      if (known.has(key)) return texts;
      if (known.size >= series || Object.values(texts).some(({ length }) => length > LONGEST_VALUE)) {
        this.#tell(CROWDED, instrument, { series });
        return other;
      }
      known.add(key);
      return texts;
    };
  }

  /** Logs a mistake, once for each instrument. */
  #tell(message: string, { name }: Instrument, fields: Readonly<Record<string, unknown>>): void {
    const key = `${name} ${message}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#log.warn(message, { instrument: name, ...fields });
  }
}
