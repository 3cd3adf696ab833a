import type { Instrument, Labels, Measure, MeterSink } from '../meters.ts';

/**
 * The values measured so far, by series as Prometheus writes them, without a prefix: `orders_total{kind="spot"}`. A histogram
 * has its `_count` and `_sum`.
 */
export type Metrics = Readonly<Record<string, number>>;

/** A sink that keeps measurements for a test to read. */
export class TestMetrics implements MeterSink {
  readonly #values = new Map<string, number>();
  readonly #gauges = new Map<string, () => number>();

  counter(instrument: Instrument): Measure {
    return (labels, value) => {
      requireNumber(value);
      if (value < 0) throw new Error('a counter cannot decrease');
      this.#add(seriesOf(instrument, labels), value);
    };
  }

  histogram(instrument: Instrument): Measure {
    return (labels, value) => {
      requireNumber(value);
      this.#add(seriesOf(instrument, labels, '_count'), 1);
      this.#add(seriesOf(instrument, labels, '_sum'), value);
    };
  }

  gauge({ name }: Instrument, read: () => number): void {
    this.#gauges.set(name, read);
  }

  read(): Metrics {
    const gauges = [...this.#gauges].map(([name, read]) => [name, read()] as const);
    return Object.fromEntries([...this.#values, ...gauges].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  }

  #add(series: string, value: number): void {
    this.#values.set(series, (this.#values.get(series) ?? 0) + value);
  }
}

function requireNumber(value: unknown): void {
  if (!Number.isFinite(value)) throw new Error(`measured ${typeof value === 'number' ? value : `a ${typeof value}`}`);
}

/** Returns the name of a series. @throws Error for labels that the instrument does not have. */
function seriesOf({ name, labels: names = [] }: Instrument, labels: Labels, part = ''): string {
  const odd = Object.keys(labels).find((label) => !names.includes(label));
  if (odd !== undefined) throw new Error(`has no label "${odd}"`);
  const given = names.filter((label) => labels[label] !== undefined);
  const pairs = given.map((label) => `${label}=${JSON.stringify(String(labels[label]))}`);
  return `${name}${part}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`}`;
}
