import { definePlugin, type Taps } from '../../plugins-sdk/index.ts';
import { failureClassOf } from '../../plugins-sdk/observe.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { readHeaders, tracedRequest } from './propagation.ts';
import { SpanExport } from './span-export.ts';
import { RequestSpans } from './spans.ts';
import { endpointVariable } from './variables.ts';

const kept = new StateKey<SpanExport>('spans');

/** What is done without spans: the client's own words go on, and nothing is loaded for them. */
const handOn: Taps = {
  admit: (exchange) => {
    readHeaders(exchange);
    return undefined;
  },
  callApi: (request, exchange, call) => {
    const traced = tracedRequest(request, exchange);
    return traced && call.next(traced);
  },
  // Some requests are answered before they are let in.
  respond: (_, exchange) => {
    readHeaders(exchange);
    return undefined;
  },
};

/**
 * Hands on what a client says of its trace (W3C Trace Context) and its own id of the request. They go to the upstream of the request and
 * to its line in the log. Neither is part of what is asked, so no key, hash, receipt or proof depends on them. Where a standard
 * variable of OpenTelemetry names a collector, each request has spans of its own.
 */
export const tracing = definePlugin({
  name: 'tracing',
  setup({ log, states, version }) {
    const variable = endpointVariable(process.env);
    if (variable === undefined) return { hooks: handOn };
    const exporting = states.keep(kept, '', () => new SpanExport({ variable, version, log }));
    let spans: RequestSpans | undefined;
    return {
      start: async () => {
        spans = new RequestSpans(await exporting.start());
      },
      stop: () => exporting.flush(),
      hooks: {
        ...handOn,
        callApi: (request, exchange, call) =>
          spans?.call(request, exchange, (traceparent) => call.next(tracedRequest(request, exchange, traceparent))),
        concluded: (outcome, exchange) => {
          if (outcome.kind === 'refused') spans?.failed(exchange, failureClassOf(outcome.refusal));
        },
      },
      observe: {
        stage: (event) => spans?.stage(event),
        response: (exchange, status) => spans?.response(exchange, status),
      },
    };
  },
});
