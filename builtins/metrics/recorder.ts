import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type {
  CallEvent,
  Exchange,
  Labels,
  Log,
  Measure,
  MeterSink,
  MeterSpec,
  Outcome,
  StageEvent,
} from '../../plugins-sdk/index.ts';
import { observeProcess } from './process.ts';

const PREFIX = 'signed_data_proxy_';

/** Seconds of a whole request or a call to another service. */
const CALL_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Seconds of a stage: most do a few microseconds of work, some make a call. */
const STAGE_BUCKETS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30];
/** Parts of a budget. */
const RATIO_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99];

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}

/** The endpoint that a request is for; empty texts until one is known. */
function endpointLabels({ resolved }: Exchange) {
  return { api: resolved?.api ?? '', endpoint: resolved?.name ?? '', mode: resolved?.mode ?? '' };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'threw no error';
}

/** Counts and times what it is told of, and what features measure. No label holds what a client chose. */
export class Recorder implements MeterSink {
  readonly #registry = new Registry();
  readonly #log: Log;
  readonly #stopObserving: () => void;
  /** Instruments that have been complained of. */
  readonly #faulty = new Set<string>();
  /** Entries of a budget's account that are counted. */
  readonly #counted = new WeakMap<object, number>();
  #closed = false;

  readonly #requests = this.#counter(
    'requests_total',
    'HTTP requests by what they asked for and the status of the response; 499: the client left before it',
    ['route', 'api', 'endpoint', 'mode', 'status'],
  );
  readonly #requestSeconds = this.#histogram(
    'request_duration_seconds',
    'Duration of requests for an endpoint, from their headers to the last byte of the response',
    ['api', 'endpoint', 'mode'],
    CALL_BUCKETS,
  );
  readonly #outcomes = this.#counter(
    'outcomes_total',
    'How requests for an endpoint ended, those in the background included: signed, refused or abandoned by the client',
    ['api', 'endpoint', 'mode', 'outcome'],
  );
  readonly #stageSeconds = this.#histogram(
    'stage_duration_seconds',
    'Duration of a stage of the pipeline: a plugin answered, all were silent, or the request was refused',
    ['stage', 'outcome'],
    STAGE_BUCKETS,
  );
  readonly #pluginCalls = this.#counter(
    'plugin_calls_total',
    'Calls of plugins that have a budget: done, failed or exhausted; of other plugins those that failed',
    ['plugin', 'stage', 'outcome'],
  );
  readonly #pluginSeconds = this.#counter('plugin_seconds_total', 'Time that plugins with a budget have used of it', [
    'plugin',
    'stage',
  ]);
  readonly #budgetUsed = this.#histogram(
    'plugin_budget_used_ratio',
    'The part of its budget that a plugin has used in a request by the end of a call',
    ['plugin', 'stage'],
    RATIO_BUCKETS,
  );

  constructor(log: Log) {
    this.#log = log;
    this.#stopObserving = observeProcess(this.#registry);
  }

  /** All of it in Prometheus's text format, version 0.0.4. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Counts no more. */
  close(): void {
    this.#closed = true;
    this.#stopObserving();
    this.#registry.clear();
  }

  response(exchange: Exchange, status: number): void {
    const labels = endpointLabels(exchange);
    this.#requests.inc({ route: exchange.route, ...labels, status });
    if (exchange.resolved !== undefined) this.#requestSeconds.observe(labels, seconds(exchange.elapsed()));
  }

  settle({ kind }: Outcome, exchange: Exchange): void {
    if (exchange.resolved !== undefined) this.#outcomes.inc({ ...endpointLabels(exchange), outcome: kind });
  }

  stage({ stage, outcome, milliseconds }: StageEvent): void {
    this.#stageSeconds.observe({ stage, outcome }, seconds(milliseconds));
  }

  call({ plugin, stage, ledger, outcome }: CallEvent): void {
    // A mode passes on what the stages after it have refused.
    if (ledger === undefined && stage === 'deliver') return;
    this.#pluginCalls.inc({ plugin, stage, outcome });
    if (ledger === undefined) return;
    // A call for which nothing was left has no entry of its own.
    const { spent, budget, remaining } = ledger;
    for (const entry of spent.slice(this.#counted.get(ledger) ?? 0)) {
      this.#pluginSeconds.inc({ plugin, stage: entry.stage }, seconds(entry.milliseconds));
    }
    this.#counted.set(ledger, spent.length);
    this.#budgetUsed.observe({ plugin, stage }, Math.min((budget - remaining) / budget, 1));
  }

  counter({ name, help, labels = [] }: MeterSpec): Measure {
    const counter = this.#counter(name, help, labels);
    return this.#heeding(name, (values, value) => counter.inc({ ...values }, value));
  }

  histogram({ name, help, labels = [] }: MeterSpec): Measure {
    const histogram = this.#histogram(name, help, labels, CALL_BUCKETS);
    return this.#heeding(name, (values, value) => histogram.observe({ ...values }, value));
  }

  gauge({ name, help }: MeterSpec, read: () => number): void {
    const present = () => {
      try {
        const value = read();
        if (typeof value === 'number') return value;
        throw new Error(`reads a ${typeof value}`);
      } catch (error) {
        this.#complain(name, error);
        return Number.NaN;
      }
    };
    const options = { ...this.#named(name), help };
    new Gauge({
      ...options,
      collect() {
        this.set(present());
      },
    });
  }

  /** A plugin's mistake in measuring is no reason to refuse a request. */
  #heeding(name: string, measure: Measure): Measure {
    return (labels: Labels, value) => {
      if (this.#closed) return;
      try {
        measure(labels, value);
      } catch (error) {
        this.#complain(name, error);
      }
    };
  }

  #complain(instrument: string, error: unknown): void {
    if (this.#faulty.has(instrument)) return;
    this.#faulty.add(instrument);
    this.#log.warn('an instrument cannot be measured', { instrument, error: messageOf(error) });
  }

  #counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ ...this.#named(name), help, labelNames });
  }

  #histogram<L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]): Histogram<L> {
    return new Histogram({ ...this.#named(name), help, labelNames, buckets });
  }

  #named(name: string) {
    const whole = PREFIX + name;
    if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new Error(`the name of the instrument "${name}" is not in snake case`);
    if (this.#registry.getSingleMetric(whole)) throw new Error(`two instruments are named "${name}"`);
    return { name: whole, registers: [this.#registry] };
  }
}
