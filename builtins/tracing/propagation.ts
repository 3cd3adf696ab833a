import { ContextKey, type Exchange, type OutgoingRequest } from '../../plugins-sdk/index.ts';

/** The parsed headers `traceparent` and `tracestate` (W3C Trace Context). */
interface TraceContext {
  /** ID of the trace: 32 hex digits. */
  readonly traceId: string;
  /** ID of the sender's span: 16 hex digits. */
  readonly parentId: string;
  readonly isSampled: boolean;
  /** The `traceparent` to send on when no span is added to the trace. */
  readonly traceparent: string;
  /** The text of `tracestate`, if it is valid. */
  readonly tracestate: string | undefined;
}

const PARENT =
  /^(?<version>(?!ff)[0-9a-f]{2})-(?<traceId>(?!0{32})[0-9a-f]{32})-(?<parentId>(?!0{16})[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-.*)?$/;

/** Most members of a valid `tracestate`. */
const MOST_MEMBERS = 32;
const MEMBER =
  /^([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Reads the trace context of a request. Of a `traceparent` of a later version it reads the part that version 00 defines.
 * @param headers by lower-case names, with repeated headers joined by commas.
 * @returns `undefined` without a valid `traceparent`; `tracestate` alone is ignored.
 */
function readTraceContext(headers: Readonly<Record<string, string | undefined>>): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (traceparent === undefined) return undefined;
  const { version, traceId, parentId, flags = '', more } = PARENT.exec(traceparent)?.groups ?? {};
  if (traceId === undefined || parentId === undefined || (version === '00' && more !== undefined)) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  return {
    traceId,
    parentId,
    isSampled,
    traceparent: version === '00' ? traceparent : writeTraceparent({ traceId, parentId, isSampled }),
    tracestate: tracestate !== undefined && isState(tracestate) ? tracestate : undefined,
  };
}

/** Returns a `traceparent` of version 00. */
export function writeTraceparent(context: Pick<TraceContext, 'traceId' | 'parentId' | 'isSampled'>): string {
  const { traceId, parentId, isSampled } = context;
  return `00-${traceId}-${parentId}-0${Number(isSampled)}`;
}

function isState(text: string): boolean {
  // Only spaces and tabs may surround members, while `trim` removes any white space. A trimming regex would take quadratic time.
  if (!/^[\t\x20-\x7e]*$/.test(text)) return false;
  const listed = text.split(',').map((member) => member.trim());
  const members = listed.filter((member) => member !== '');
  return members.length > 0 && members.length <= MOST_MEMBERS && members.every((member) => MEMBER.test(member));
}

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
