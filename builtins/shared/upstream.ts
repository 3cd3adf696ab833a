import type { BoundedResponse } from '../../lib/http/client/index.ts';
import { baseUrl, DEFAULT_TIMEOUT_MS, type EndpointDraft, keys, optionalKey } from '../../plugins-sdk/config.ts';
import { type Endpoint, isRefusal, Refusal, Type } from '../../plugins-sdk/index.ts';
import type { FailureClass } from '../../plugins-sdk/observe.ts';
import type { Responses } from '../../plugins-sdk/openapi.ts';

/** Returns one endpoint of each API, for checks of what its endpoints share. */
export function firstOfApis(endpoints: readonly EndpointDraft[]): EndpointDraft[] {
  return endpoints.filter(({ path }) => path.endsWith('.endpoints[0]'));
}

/** Makes the refusal for a failed upstream call; reason and class are for the log and for metrics. */
export function failed(
  reason: string,
  failureClass: FailureClass,
  { upstreamStatus, retryAfter }: Partial<Pick<Refusal, 'upstreamStatus' | 'retryAfter'>> = {},
): Refusal {
  // An operator cannot mend a client's mistake.
  const fault = failureClass !== 'requester';
  const headers = retryAfter === undefined ? {} : retryAfterHeader(retryAfter);
  return new Refusal(502, 'API call failed', { reason, failureClass, upstreamStatus, retryAfter, fault, headers });
}

function retryAfterHeader(milliseconds: number) {
  return { 'Retry-After': String(Math.ceil(milliseconds / 1000)) };
}

/**
 * Returns the milliseconds that a `Retry-After` header asks to wait (RFC 9110, 10.2.3): seconds, which some upstreams send
 * with a fraction, or a date. A date must have a time with colons, because `Date.parse` reads "-5" as a day in May 2001. One of
 * asctime's form ends with the year, and is in UTC, too (RFC 9110, section 5.6.7). White space after the value is no part of it.
 */
export function retryAfterOf({ 'retry-after': value }: BoundedResponse['headers']): number | undefined {
  if (typeof value !== 'string' || !/^\d+(\.\d+)?\s*$|\d:\d\d/.test(value)) return undefined;
  const date = value.replace(/:\d\d \d{4}\s*$/, '$& GMT');
  const milliseconds = /^\d{1,9}(\.\d+)?\s*$/.test(value) ? Number(value) * 1000 : Date.parse(date) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}

/** The kind of an upstream failure, in the terms of `retry.on`; a retry may not help with `other`. */
export type FailureKind = 'connect' | 'timeout' | '5xx' | '429' | 'unexpected' | 'other';

/** Returns the kind of an error of `callApi`; undefined if it is no upstream failure, such as a client that left. */
export function failureKindOf(error: unknown): FailureKind | undefined {
  if (!isRefusal(error) || error.status !== 502) return undefined;
  const { failureClass, upstreamStatus } = error;
  if (failureClass === 'timeout' || failureClass === 'unexpected') return failureClass;
  if (upstreamStatus === 429) return '429';
  if (upstreamStatus !== undefined) return upstreamStatus >= 500 ? '5xx' : 'other';
  return isUnsent(error) || failureClass === 'body' ? 'connect' : 'other';
}

/** Makes the refusal of a call that is not sent. @param milliseconds until calls are sent again. */
export function unavailable(reason: string, milliseconds: number): Refusal {
  return new Refusal(503, 'Upstream unavailable', {
    headers: retryAfterHeader(Math.max(1, milliseconds)),
    reason,
    failureClass: 'busy',
  });
}

const { message: SPARED } = unavailable('', 0);

/** Describes a `Retry-After` that a response may have. */
export function mayRetryAfter(description: string) {
  return { 'Retry-After': { description, required: false, schema: { type: 'integer' } } };
}

/** Describes that refusal for the OpenAPI document. @param description when it happens. */
export function describeUnavailable(description: string): Responses {
  return { 503: { description, errors: [SPARED], headers: mayRetryAfter('Seconds until it is asked again') } };
}

/** Returns whether nothing reached the upstream, so that the request can be sent elsewhere, whatever its method. */
export function isUnsent({ failureClass = '', message }: Refusal): boolean {
  return ['dns', 'connect', 'tls'].includes(failureClass) || message === SPARED;
}

/** Returns whether an older answer or another host may help. A fault of the request itself would be the same everywhere. */
export function isOutage(error: unknown): error is Refusal {
  if (!isRefusal(error)) return false;
  const { status, upstreamStatus = 500 } = error;
  return [502, 503].includes(status) && (upstreamStatus < 400 || upstreamStatus > 499 || upstreamStatus === 429);
}

/** Returns the failure to report of two: a later 503 (no room) does not hide that the upstream was asked before. */
export function worse(before: unknown, now: unknown): unknown {
  return before !== undefined && isRefusal(now) && now.status === 503 ? before : now;
}

/** Returns the milliseconds that an upstream call of an endpoint may take. */
export function callTimeoutOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): number {
  return keys.timeout.of(endpoint) ?? DEFAULT_TIMEOUT_MS;
}

/** A config key of the plugin `upstream-mirrors`; other plugins only read it. */
export const mirrorsKey = optionalKey(
  'api',
  'mirrors',
  Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 10,
    uniqueItems: true,
    description: 'Base URLs to try in turn where url fails; default none',
  }),
);

/** Returns the base URLs of an API, without a slash at the end: its own, then its mirrors. */
export function basesOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): readonly string[] {
  return [baseUrl(endpoint), ...(mirrorsKey.of(endpoint) ?? []).map((url) => url.replace(/\/$/, ''))];
}

/** Returns whether a URL is below a base. A host or path that only begins with the same letters is not. */
export function isBelow(base: string, url: string): boolean {
  return url.startsWith(base) && /^(?:[/?]|$)/.test(url.slice(base.length));
}

/** Returns the host of a URL, with its port. */
export function hostOf(url: string): string {
  return /^https?:\/\/([^/?#]+)/i.exec(url)?.[1] ?? '';
}
