import type { RequestFailure } from '../lib/http/client/index.ts';
import { isRefusal, type Refusal } from './kernel.ts';

/** Why the call of an upstream failed, or gave nothing that can be signed. */
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

/** `requester`: what the client asked for, and nothing else, made it fail. */
export const failureClasses = [...upstreamClasses, 'requester', 'busy', 'signer', 'plugin', 'engine'] as const;

export type UpstreamClass = (typeof upstreamClasses)[number];
/** One of `failureClasses`. */
export type FailureClass = (typeof failureClasses)[number];

const known: ReadonlySet<string> = new Set(failureClasses);

function isClass(text: string): text is FailureClass {
  return known.has(text);
}

/**
 * The class of a failure: that which the refusal names, or `plugin` where a plugin is to blame and names none.
 * @returns nothing where the client is to blame: that is no failure.
 */
export function failureClassOf({ failureClass = '', fault }: Refusal): FailureClass | undefined {
  if (isClass(failureClass)) return failureClass;
  return fault ? 'plugin' : undefined;
}

/** The class of what was thrown, where the upstream is to blame. */
export function upstreamClassOf(error: unknown): UpstreamClass | undefined {
  return isRefusal(error) ? upstreamClasses.find((each) => each === error.failureClass) : undefined;
}

/** The class of an upstream status that is no success; a redirect says nothing that can be signed. */
export function classOfStatus(status: number): UpstreamClass {
  if (status >= 500) return 'status_5xx';
  return status >= 400 ? 'status_4xx' : 'body';
}

/** The class of an upstream call that gave no complete answer. A call that was aborted is nobody's fault: the service ends. */
export function classOfRequest({ kind, phase }: RequestFailure): FailureClass {
  if (kind === 'timeout') return 'timeout';
  if (kind === 'aborted') return 'busy';
  return phase === 'answer' ? 'body' : phase;
}
