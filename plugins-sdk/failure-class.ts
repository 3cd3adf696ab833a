import { isRefusal, type Refusal } from '../kernel/refusal.ts';
import type { RequestFailure } from '../lib/http/client/index.ts';

/** Classes of failures that the upstream is to blame for: its call failed, or gave nothing to sign. */
export const upstreamClasses = [
  'timeout',
  'dns',
  'connect',
  'tls',
  'status_4xx',
  'status_5xx',
  'body',
  'unexpected',
  'encode',
] as const;

/** All classes of failures. The class `requester` blames the client's request. */
export const failureClasses = [...upstreamClasses, 'requester', 'busy', 'signer', 'plugin', 'engine'] as const;

/** One of `upstreamClasses`. */
type UpstreamClass = (typeof upstreamClasses)[number];
/** One of `failureClasses`. */
export type FailureClass = (typeof failureClasses)[number];

/**
 * Returns the class that a refusal names, or `plugin` if a plugin is to blame.
 * @returns `undefined` if the client is to blame: that is no failure.
 */
export function failureClassOf({ failureClass, fault }: Refusal): FailureClass | undefined {
  return failureClasses.find((each) => each === failureClass) ?? (fault ? 'plugin' : undefined);
}

/** Returns the class of an error if the upstream is to blame, else `undefined`. */
export function upstreamClassOf(error: unknown): UpstreamClass | undefined {
  return isRefusal(error) ? upstreamClasses.find((each) => each === error.failureClass) : undefined;
}

/** Returns the class of an upstream status other than 2xx. */
export function classOfStatus(status: number): UpstreamClass {
  if (status >= 500) return 'status_5xx';
  return status >= 400 ? 'status_4xx' : 'body';
}

/** Returns the class of an upstream call that failed. An aborted call counts as `busy`: the service is ending, or the client has left. */
export function classOfRequest({ kind, phase }: RequestFailure): FailureClass {
  if (kind === 'timeout') return 'timeout';
  if (kind === 'aborted') return 'busy';
  return phase === 'answer' ? 'body' : phase;
}
