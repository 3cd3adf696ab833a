import { definePlugin } from '../../plugins-sdk/index.ts';
import { hasRead, readHeaders, tracedRequest } from './propagation.ts';

/**
 * Hands on what a client says of its trace (W3C Trace Context) and its own id of the request: to the upstream of the request and
 * to its line in the log. Neither is part of what is asked, so no key, hash, receipt or proof depends on them.
 */
export const tracing = definePlugin({
  name: 'tracing',
  budget: 'none',
  setup: () => ({
    hooks: {
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
        if (!hasRead(exchange)) readHeaders(exchange);
        return undefined;
      },
    },
  }),
});
