import type { Endpoint, Exchange } from '../../plugins-sdk/index.ts';
import {
  failureClasses,
  failureClassOf,
  type Measure,
  type Meters,
  type RequestOutcome,
  type StageEvent,
  upstreamClasses,
  upstreamClassOf,
} from '../../plugins-sdk/observe.ts';

/** Counts what failed by its class: requests, and answers that an upstream gave nothing for. */
export class Failures {
  readonly #requests: Measure<'api' | 'endpoint' | 'reason'>;
  readonly #upstream: Measure<'api' | 'endpoint' | 'reason'>;

  constructor(meters: Meters, endpoints: readonly Endpoint[]) {
    const counter = (name: string, help: string, reasons: readonly string[]) =>
      meters.counter({
        name,
        help,
        labels: ['api', 'endpoint', 'reason'],
        initial: endpoints.flatMap(({ api, name: endpoint }) => reasons.map((reason) => ({ api, endpoint, reason }))),
      });
    this.#requests = counter(
      'failures_total',
      'Requests for an endpoint that failed, by the class of what went wrong; what a client did wrong is no failure',
      failureClasses,
    );
    this.#upstream = counter(
      'upstream_failures_total',
      'Answers that could not be made for what the upstream did; several requests may have waited for one',
      upstreamClasses,
    );
  }

  concluded(outcome: RequestOutcome, { resolved }: Exchange): void {
    if (outcome.kind !== 'refused' || resolved === undefined) return;
    const reason = failureClassOf(outcome.refusal);
    if (reason !== undefined) this.#requests({ api: resolved.api, endpoint: resolved.name, reason }, 1);
  }

  stage({ stage, refusal, exchange: { resolved } }: StageEvent): void {
    // The stages round that one are refused, too.
    if (refusal?.stage !== stage || resolved === undefined) return;
    const reason = upstreamClassOf(refusal);
    if (reason !== undefined) this.#upstream({ api: resolved.api, endpoint: resolved.name, reason }, 1);
  }
}
