import type { RequestFailure } from '../lib/http/client/index.ts';
import { isRefusal, type Refusal } from './kernel.ts';

/** Why an upstream call failed, or gave nothing to sign. */
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

/** The reasons of failures; `requester` blames what the client asked for. */
export const failureClasses = [...upstreamClasses, 'requester', 'busy', 'signer', 'plugin', 'engine'] as const;

export type UpstreamClass = (typeof upstreamClasses)[number];
/** One of `failureClasses`. */
export type FailureClass = (typeof failureClasses)[number];

/**
 * The class that a refusal names, or `plugin` if a plugin is to blame.
 * @returns nothing where the client is to blame: that is no failure.
 */
export function failureClassOf({ failureClass, fault }: Refusal): FailureClass | undefined {
  return failureClasses.find((each) => each === failureClass) ?? (fault ? 'plugin' : undefined);
}

/** The class of an error, if the upstream is to blame. */
export function upstreamClassOf(error: unknown): UpstreamClass | undefined {
  return isRefusal(error) ? upstreamClasses.find((each) => each === error.failureClass) : undefined;
}

/** The class of an upstream status other than 2xx. */
export function classOfStatus(status: number): UpstreamClass {
  if (status >= 500) return 'status_5xx';
  return status >= 400 ? 'status_4xx' : 'body';
}

/** The class of an incomplete upstream call. An aborted call has no class: the service ends. */
export function classOfRequest({ kind, phase }: RequestFailure): FailureClass {
  if (kind === 'timeout') return 'timeout';
  if (kind === 'aborted') return 'busy';
  return phase === 'answer' ? 'body' : phase;
}
