import type { Endpoint, Exchange } from '../../plugins-sdk/index.ts';
import type { CallEvent, Measure, Meters, RequestOutcome, StageEvent } from '../../plugins-sdk/observe.ts';

/** Seconds of a stage: most do a few microseconds of work, some make a call. */
const STAGE_BUCKETS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30];
/** Parts of a budget. */
const RATIO_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99];

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}

const ENDPOINT_ROUTE = '/endpoints/:endpointId';
const OUTCOMES = ['signed', 'refused', 'abandoned'];
const CALLS = ['done', 'failed', 'exhausted'];

function labelsOf({ api, name, mode }: Pick<Endpoint, 'api' | 'name' | 'mode'>) {
  return { api, endpoint: name, mode };
}

/** The endpoint that a request is for; empty texts until one is known. */
function endpointLabels({ resolved }: Exchange) {
  return labelsOf(resolved ?? { api: '', name: '', mode: '' });
}

/** Counts and times requests, stages and calls of plugins. No label holds what a client chose. */
export class Traffic {
  /** Plugins at stages that have been called. */
  readonly #called = new Set<string>();
  readonly #requests: Measure<'route' | 'api' | 'endpoint' | 'mode' | 'status'>;
  readonly #requestSeconds: Measure<'api' | 'endpoint' | 'mode'>;
  readonly #outcomes: Measure<'api' | 'endpoint' | 'mode' | 'outcome'>;
  readonly #stageSeconds: Measure<'stage' | 'outcome'>;
  readonly #pluginCalls: Measure<'plugin' | 'stage' | 'outcome'>;
  readonly #pluginSeconds: Measure<'plugin' | 'stage'>;
  readonly #budgetUsed: Measure<'plugin' | 'stage'>;

  constructor(meters: Meters, endpoints: readonly Endpoint[]) {
    this.#requests = meters.counter({
      name: 'requests_total',
      help: 'HTTP requests by what they asked for and the status of the response; 499: the client left before it',
      labels: ['route', 'api', 'endpoint', 'mode', 'status'],
      initial: endpoints.flatMap((endpoint) =>
        [endpoint.mode === 'async' ? '202' : '200', '500', '502', '503'].map((status) => {
          return { route: ENDPOINT_ROUTE, ...labelsOf(endpoint), status };
        }),
      ),
    });
    this.#requestSeconds = meters.histogram({
      name: 'request_duration_seconds',
      help: 'Duration of requests for an endpoint, from their headers to the last byte of the response',
      labels: ['api', 'endpoint', 'mode'],
    });
    this.#outcomes = meters.counter({
      name: 'outcomes_total',
      help: 'How requests for an endpoint ended, those in the background included: signed, refused or abandoned by the client',
      labels: ['api', 'endpoint', 'mode', 'outcome'],
      initial: endpoints.flatMap((endpoint) => OUTCOMES.map((outcome) => ({ ...labelsOf(endpoint), outcome }))),
    });
    this.#stageSeconds = meters.histogram({
      name: 'stage_duration_seconds',
      help: 'Duration of a stage of the pipeline: a plugin answered, all were silent, or the request was refused',
      labels: ['stage', 'outcome'],
      buckets: STAGE_BUCKETS,
    });
    this.#pluginCalls = meters.counter({
      name: 'plugin_calls_total',
      help: "Calls of operators' plugins that have a budget: done, failed or exhausted; of all others those that failed",
      labels: ['plugin', 'stage', 'outcome'],
    });
    this.#pluginSeconds = meters.counter({
      name: 'plugin_seconds_total',
      help: "Time that operators' plugins with a budget have used of it",
      labels: ['plugin', 'stage'],
    });
    this.#budgetUsed = meters.histogram({
      name: 'plugin_budget_used_ratio',
      help: "The part of its budget that an operator's plugin has used in a request by the end of a call",
      labels: ['plugin', 'stage'],
      buckets: RATIO_BUCKETS,
    });
  }

  response(exchange: Exchange, status: number): void {
    const labels = endpointLabels(exchange);
    this.#requests({ route: exchange.route, ...labels, status: String(status) }, 1);
    if (exchange.resolved !== undefined) this.#requestSeconds(labels, seconds(exchange.elapsed()));
  }

  concluded({ kind }: RequestOutcome, exchange: Exchange): void {
    if (exchange.resolved !== undefined) this.#outcomes({ ...endpointLabels(exchange), outcome: kind }, 1);
  }

  stage({ stage, outcome, milliseconds }: StageEvent): void {
    this.#stageSeconds({ stage, outcome }, seconds(milliseconds));
  }

  call({ plugin, stage, milliseconds, budget, outcome }: CallEvent): void {
    // A refusal of a later stage passes through the mode, too, and would count twice.
    if (budget === undefined && stage === 'present') return;
    this.#pluginCalls({ plugin, stage, outcome }, 1);
    if (budget === undefined) return;
    this.#begin(plugin, stage);
    if (milliseconds > 0) this.#pluginSeconds({ plugin, stage }, seconds(milliseconds));
    const { total, remaining } = budget;
    this.#budgetUsed({ plugin, stage }, Math.min((total - remaining) / total, 1));
  }

  /** What a plugin's calls may come to is there at 0 from its first one on. */
  #begin(plugin: string, stage: string): void {
    const key = `${stage} ${plugin}`;
    if (this.#called.has(key)) return;
    this.#called.add(key);
    for (const outcome of CALLS) this.#pluginCalls({ plugin, stage, outcome }, 0);
  }
}
