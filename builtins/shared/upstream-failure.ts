import type { BoundedResponse } from '../../lib/http/client/index.ts';
import { isRefusal, Refusal } from '../../plugins-sdk/index.ts';
import type { FailureClass } from '../../plugins-sdk/observe.ts';
import type { Responses } from '../../plugins-sdk/openapi.ts';

type UpstreamFailureOptions = Pick<Refusal, 'upstreamStatus' | 'retryAfter'>;

/** The refusal when an upstream call failed; reason and class are for the log and for metrics. */
export function failed(
  reason: string,
  failureClass: FailureClass,
  { upstreamStatus, retryAfter }: Partial<UpstreamFailureOptions> = {},
): Refusal {
  // What a client got wrong is nothing that an operator could mend.
  const fault = failureClass !== 'requester';
  const headers = retryAfter === undefined ? {} : retryAfterHeader(retryAfter);
  return new Refusal(502, 'API call failed', { reason, failureClass, upstreamStatus, retryAfter, fault, headers });
}

function retryAfterHeader(milliseconds: number) {
  return { 'Retry-After': String(Math.ceil(milliseconds / 1000)) };
}

/**
 * Milliseconds that an answer asks to wait: in seconds, some say them with a fraction, or until a date (RFC 9110, 10.2.3).
 * A date has a time with colons: `Date.parse` takes "-5" for a day in May 2001, over which there is nothing to wait.
 */
export function retryAfterOf({ 'retry-after': value }: BoundedResponse['headers']): number | undefined {
  if (typeof value !== 'string' || !/^\d+(\.\d+)?$|\d:\d\d/.test(value)) return undefined;
  const milliseconds = /^\d{1,9}(\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}

/** How an upstream call failed, in the words of `retry.on`; `other` may be no better next time. */
export type FailureKind = 'connect' | 'timeout' | '5xx' | '429' | 'unexpected' | 'other';

/** Of what `callApi` threw; nothing of what is no failure of an upstream, such as a client that left. */
export function failureKindOf(error: unknown): FailureKind | undefined {
  if (!isRefusal(error) || error.status !== 502) return undefined;
  const { failureClass, upstreamStatus } = error;
  if (failureClass === 'timeout' || failureClass === 'unexpected') return failureClass;
  if (upstreamStatus === 429) return '429';
  if (upstreamStatus !== undefined) return upstreamStatus >= 500 ? '5xx' : 'other';
  return isUnsent(error) || failureClass === 'body' ? 'connect' : 'other';
}

/** The refusal of a call that the upstream is spared, for so many milliseconds. */
export function unavailable(reason: string, milliseconds: number): Refusal {
  return new Refusal(503, 'Upstream unavailable', {
    headers: retryAfterHeader(Math.max(1, milliseconds)),
    reason,
    failureClass: 'busy',
  });
}

const { message: SPARED } = unavailable('', 0);

/** The same refusal in the OpenAPI document. @param description when it happens. */
export function describeUnavailable(description: string): Responses {
  const retryAfter = { description: 'Seconds until it is asked again', required: false, schema: { type: 'integer' } };
  return { 503: { description, errors: [SPARED], headers: { 'Retry-After': retryAfter } } };
}

/** Whether nothing of the request has reached the upstream, so that it can be sent elsewhere, whatever its method. */
export function isUnsent({ failureClass = '', message }: Refusal): boolean {
  return ['dns', 'connect', 'tls'].includes(failureClass) || message === SPARED;
}

/** Whether an older answer, or another host, may do better: what an upstream says of the request itself, all would say. */
export function isOutage(error: unknown): error is Refusal {
  if (!isRefusal(error)) return false;
  const { status, upstreamStatus = 500 } = error;
  return [502, 503].includes(status) && (upstreamStatus < 400 || upstreamStatus > 499 || upstreamStatus === 429);
}

/** Of two failures of one request the one to tell: that there was no room later does not undo that the upstream was asked before. */
export function worse(before: unknown, now: unknown): unknown {
  return before !== undefined && isRefusal(now) && now.status === 503 ? before : now;
}
