import { median, quantile } from './statistics.ts';

/** CPU of one build for a request by that of the release, beyond which it is slower. */
export const LIMIT = 1.08;
/** Of five rounds four must say that it is slower at all: a few rounds on a busy machine move a median. */
const DISSENT = 0.2;

/** @param ratios of each round: CPU for a request by that of the release in the same round. */
export function isSlower(ratios: readonly number[]): boolean {
  return median(ratios) > LIMIT && quantile(ratios, DISSENT) > 1;
}
