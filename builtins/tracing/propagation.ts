import { readTraceContext, type TraceContext } from '../../lib/http/trace-context.ts';
import { ContextKey, type Exchange, type OutgoingRequest } from '../../plugins-sdk/index.ts';

/** The client's trace context. */
export const clientTrace = new ContextKey<TraceContext>('clientTrace');
/** ID of the trace that a request belongs to, for its log line. */
export const traceId = new ContextKey<string>('traceId', { logged: true });
/** The client's own ID of a request, for its log line. */
const clientRequestId = new ContextKey<string>('clientRequestId', { logged: true });

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Reads a client's trace and request ID into context keys. What goes upstream depends on these headers alone. */
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
 * Adds the trace and the client's ID to an upstream request; undefined if there is nothing to add.
 * @param traceparent of the call's own span; default: the client's.
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
  // A `traceparent` that the operator configured stays, without the client's `tracestate`.
  const isTraced = Object.keys(request.headers).some((name) => name.toLowerCase() === 'traceparent');
  if (parent !== undefined && !isTraced) {
    callHeaders.traceparent = parent;
    if (trace?.tracestate !== undefined) callHeaders.tracestate = trace.tracestate;
  }
  if (id !== undefined) callHeaders['X-Client-Request-Id'] = id;
  return { ...request, callHeaders: { ...callHeaders, ...request.callHeaders } };
}
