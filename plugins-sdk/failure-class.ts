import type { Refusal } from './kernel.ts';
import type { RequestFailure } from './lib/http/client/index.ts';

/** Why the call of an upstream failed, or gave nothing that can be signed. */
export const upstreamClasses = [
  'timeout',
  'dns',
  'connect',
  'tls',
  'status_4xx',
  'status_5xx',
  'body',
  'encode',
] as const;

const classes = [...upstreamClasses, 'busy', 'signer', 'plugin', 'engine'] as const;

export type UpstreamClass = (typeof upstreamClasses)[number];
export type FailureClass = (typeof classes)[number];

const known: ReadonlySet<string> = new Set(classes);

function isClass(text: string): text is FailureClass {
  return known.has(text);
}

/**
 * The class of a failure: that which the refusal names, or `plugin` where a plugin is to blame and names none.
 * @returns nothing where the client is to blame: that is no failure.
 */
export function failureClassOf({ failureClass = '', failure, fault }: Refusal): FailureClass | undefined {
  if (isClass(failureClass)) return failureClass;
  return failure && fault ? 'plugin' : undefined;
}

export function isUpstreamClass(text: FailureClass | undefined): text is UpstreamClass {
  return upstreamClasses.some((each) => each === text);
}

/** The class of an upstream status that is no success; a redirect says nothing that can be signed. */
export function classOfStatus(status: number): UpstreamClass {
  if (status >= 500) return 'status_5xx';
  return status >= 400 ? 'status_4xx' : 'body';
}

/** The class of an upstream call that gave no complete answer. */
export function classOfRequest({ kind, phase }: RequestFailure): UpstreamClass {
  if (kind === 'timeout') return 'timeout';
  return phase === 'answer' ? 'body' : phase;
}
