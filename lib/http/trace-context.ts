/** What the headers `traceparent` and `tracestate` of W3C Trace Context say. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** Of the sender's span: 16 hex digits. */
  readonly parentId: string;
  readonly isSampled: boolean;
  /** The header to send where nothing is added to the trace. */
  readonly traceparent: string;
  /** The text of the other header, where it is valid. */
  readonly tracestate: string | undefined;
}

type Headers = Readonly<Record<string, string | undefined>>;

const PARENT =
  /^(?<version>(?!ff)[0-9a-f]{2})-(?<traceId>(?!0{32})[0-9a-f]{32})-(?<parentId>(?!0{16})[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-.*)?$/;

/** Members of `tracestate` that a service has to take at most. */
const MOST_MEMBERS = 32;
const MEMBER =
  /^([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Reads the headers of a request, repeated ones joined by commas. A header of a later version counts by what version 00 knows of it.
 * @param headers by lower-case names.
 * @returns nothing without a valid `traceparent`: then `tracestate` does not count either.
 */
export function readTraceContext(headers: Headers): TraceContext | undefined {
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

export function writeTraceparent({
  traceId,
  parentId,
  isSampled,
}: Pick<TraceContext, 'traceId' | 'parentId' | 'isSampled'>): string {
  return `00-${traceId}-${parentId}-0${Number(isSampled)}`;
}

function isState(text: string): boolean {
  // Of all white space that `trim` takes, only these two may surround members; an expression for them takes quadratic time.
  if (!/^[\t\x20-\x7e]*$/.test(text)) return false;
  const members = text
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
  return members.length > 0 && members.length <= MOST_MEMBERS && members.every((member) => MEMBER.test(member));
}
