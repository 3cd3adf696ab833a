import type { Endpoint, Exchange } from '../../plugins-sdk/index.ts';
import {
  type CallEvent,
  failureClasses,
  failureClassOf,
  type Meters,
  type RequestOutcome,
  type StageEvent,
  upstreamClasses,
  upstreamClassOf,
} from '../../plugins-sdk/observe.ts';

const REQUESTS = {
  name: 'requests_total',
  help: 'HTTP requests by what they asked for and the status of the response; 499: the client left before it',
  labels: ['route', 'api', 'endpoint', 'mode', 'status'],
} as const;
const REQUEST_SECONDS = {
  name: 'request_duration_seconds',
  help: 'Duration of requests for an endpoint, from their headers to the last byte of the response',
  labels: ['api', 'endpoint', 'mode'],
} as const;
const OUTCOMES = {
  name: 'outcomes_total',
  help: 'How requests for an endpoint ended, those in the background included: signed, refused or abandoned by the client',
  labels: ['api', 'endpoint', 'mode', 'outcome'],
} as const;
const FAILURES = {
  name: 'failures_total',
  help: 'Requests for an endpoint that failed, by the class of what went wrong; what a client did wrong is no failure',
  labels: ['api', 'endpoint', 'reason'],
} as const;
const UPSTREAM_FAILURES = {
  name: 'upstream_failures_total',
  help: 'Answers that could not be made for what the upstream did; several requests may have waited for one',
  labels: ['api', 'endpoint', 'reason'],
} as const;
const STAGE_SECONDS = {
  name: 'stage_duration_seconds',
  help: 'Duration of a stage of the pipeline: a plugin answered, all were silent, or the request was refused',
  labels: ['stage', 'outcome'],
  // Most stages do a few microseconds of work, some make a call.
  buckets: [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
} as const;

const seconds = (milliseconds: number) => milliseconds / 1000;

/** Returns the labels of an endpoint; empty texts if a request is for none. */
function labelsOf(endpoint: Pick<Endpoint, 'api' | 'name' | 'mode'> | undefined) {
  return { api: endpoint?.api ?? '', endpoint: endpoint?.name ?? '', mode: endpoint?.mode ?? '' };
}

function firstRequests(endpoint: Endpoint) {
  const statuses = [endpoint.mode === 'async' ? '202' : '200', '500', '502', '503'];
  return statuses.map((status) => ({ route: '/endpoints/:endpointId', ...labelsOf(endpoint), status }));
}

/** Counts and times requests and stages. No label holds a client's text. */
export function traffic(meters: Meters, endpoints: readonly Endpoint[]) {
  const ended = ['signed', 'refused', 'abandoned'];
  const outcomesOf = (endpoint: Endpoint) => ended.map((outcome) => ({ ...labelsOf(endpoint), outcome }));
  const failed = (reasons: readonly string[]) =>
    endpoints.flatMap(({ api, name: endpoint }) => reasons.map((reason) => ({ api, endpoint, reason })));
  const requests = meters.counter({ ...REQUESTS, initial: endpoints.flatMap(firstRequests) });
  const requestSeconds = meters.histogram(REQUEST_SECONDS);
  const outcomes = meters.counter({ ...OUTCOMES, initial: endpoints.flatMap(outcomesOf) });
  const failures = meters.counter({ ...FAILURES, initial: failed(failureClasses) });
  const upstreamFailures = meters.counter({ ...UPSTREAM_FAILURES, initial: failed(upstreamClasses) });
  const stageSeconds = meters.histogram(STAGE_SECONDS);
  return {
    response(exchange: Exchange, status: number): void {
      const labels = labelsOf(exchange.resolved);
      requests({ route: exchange.route, ...labels, status: String(status) });
      if (exchange.resolved !== undefined) requestSeconds(labels, seconds(exchange.elapsed()));
    },
    concluded(outcome: RequestOutcome, { resolved }: Exchange): void {
      if (resolved === undefined) return;
      outcomes({ ...labelsOf(resolved), outcome: outcome.kind });
      const reason = outcome.kind === 'refused' ? failureClassOf(outcome.refusal) : undefined;
      if (reason !== undefined) failures({ api: resolved.api, endpoint: resolved.name, reason });
    },
    stage({ stage, outcome, milliseconds, refusal, exchange: { resolved } }: StageEvent): void {
      stageSeconds({ stage, outcome }, seconds(milliseconds));
      // Enclosing stages see the same refusal, so only the stage that refused counts it.
      if (refusal?.stage !== stage || resolved === undefined) return;
      const reason = upstreamClassOf(refusal);
      if (reason !== undefined) upstreamFailures({ api: resolved.api, endpoint: resolved.name, reason });
    },
  };
}

/** Counts and times the calls of plugins. A plugin's first call creates the series of all outcomes, at 0. */
export function pluginCalls(meters: Meters): (event: CallEvent) => void {
  const calls = meters.counter({
    name: 'plugin_calls_total',
    help: "Calls of operators' plugins that have a budget: done, failed or exhausted; of all others those that failed",
    labels: ['plugin', 'stage', 'outcome'],
  });
  const used = meters.counter({
    name: 'plugin_seconds_total',
    help: "Time that operators' plugins with a budget have used of it",
    labels: ['plugin', 'stage'],
  });
  const ratio = meters.histogram({
    name: 'plugin_budget_used_ratio',
    help: "The part of its budget that an operator's plugin has used in a request by the end of a call",
    labels: ['plugin', 'stage'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99],
  });
  const known = new Set<string>();
  return ({ plugin, stage, milliseconds, charge, outcome }) => {
    // A later stage's refusal also passes through the mode (`present`), where it would count twice.
    if (charge === undefined && stage === 'present') return;
    calls({ plugin, stage, outcome });
    if (charge === undefined) return;
    const key = `${stage} ${plugin}`;
    if (!known.has(key)) for (const each of ['done', 'failed', 'exhausted']) calls({ plugin, stage, outcome: each }, 0);
    known.add(key);
    if (milliseconds > 0) used({ plugin, stage }, seconds(milliseconds));
    const { total, remaining } = charge;
    ratio({ plugin, stage }, Math.min((total - remaining) / total, 1));
  };
}
