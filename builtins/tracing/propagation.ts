import { readTraceContext, type TraceContext } from '../../lib/http/trace-context.ts';
import { ContextKey, type Exchange, type OutgoingRequest } from '../../plugins-sdk/index.ts';

/** What the client says of its trace. */
export const clientTrace = new ContextKey<TraceContext>('clientTrace');
/** The trace that a request belongs to, for its line in the log. */
export const traceId = new ContextKey<string>('traceId', { logged: true });
/** The client's own id of a request, for its line in the log. */
const clientRequestId = new ContextKey<string>('clientRequestId', { logged: true });

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Leaves on a request what its headers say; of nothing but them depends what goes upstream. */
export function readHeaders(exchange: Exchange): void {
  const { headers } = exchange;
  const trace = readTraceContext(headers);
  if (trace !== undefined) {
    clientTrace.set(exchange, trace);
    traceId.set(exchange, trace.traceId);
  }
  const id = headers['x-request-id'];
  if (id !== undefined && REQUEST_ID.test(id)) clientRequestId.set(exchange, id);
}

/**
 * The request as it goes upstream: nothing where there is nothing to add.
 * @param traceparent of the call itself; without one the client's goes on.
 */
export function tracedRequest(
  request: OutgoingRequest,
  exchange: Exchange,
  traceparent?: string,
): OutgoingRequest | undefined {
  const trace = clientTrace.get(exchange);
  const id = clientRequestId.get(exchange);
  const parent = traceparent ?? trace?.traceparent;
  if (parent === undefined && id === undefined) return undefined;
  const callHeaders: Record<string, string> = {};
  // To the operator's own the client's `tracestate` does not belong.
  const isTraced = Object.keys(request.headers).some((name) => name.toLowerCase() === 'traceparent');
  if (parent !== undefined && !isTraced) {
    callHeaders.traceparent = parent;
    if (trace?.tracestate !== undefined) callHeaders.tracestate = trace.tracestate;
  }
  if (id !== undefined) callHeaders['X-Client-Request-Id'] = id;
  return { ...request, callHeaders: { ...callHeaders, ...request.callHeaders } };
}
