import { describeUnavailable } from '../shared/upstream.ts';

/** The failures of endpoints whose API has a breaker. */
export const failures = describeUnavailable('The upstream has failed too often, and is asked no more for a while');
