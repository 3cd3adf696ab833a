import { definePlugin, type Taps } from '../../plugins-sdk/index.ts';
import { failureClassOf } from '../../plugins-sdk/observe.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { readHeaders, tracedRequest } from './propagation.ts';
import { endpointVariable, spanExport } from './span-export.ts';
import { RequestSpans } from './spans.ts';

const kept = new StateKey<ReturnType<typeof spanExport>>('spans');

/** The hooks without spans: they pass the client's headers on, and load no library. */
const handOn: Taps = {
  admit: readHeaders,
  callApi: (request, exchange, call) => {
    const traced = tracedRequest(request, exchange);
    return traced && call.next(traced);
  },
  // Some requests are answered before admission, and none of them has an endpoint.
  respond: (_, exchange) => (exchange.resolved === undefined ? readHeaders(exchange) : undefined),
};

/**
 * Passes a client's trace (W3C Trace Context) and its own request ID on to the upstream and to the log line. Neither is part of
 * the question, so no key, hash, receipt or proof depends on them. If a standard variable of OpenTelemetry names a collector,
 * each request has spans of its own.
 */
export const tracing = definePlugin({
  name: 'tracing',
  setup(services) {
    const variable = endpointVariable(process.env);
    if (variable === undefined) return { hooks: handOn };
    const exporting = services.states.keep(kept, '', () => spanExport(variable, services));
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
