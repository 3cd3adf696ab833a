import { describeUnavailable } from '../shared/upstream.ts';

/** The failures of endpoints whose API has a quota. */
export const failures = describeUnavailable(
  'The quota of calls to the upstream is used up, or it wants no calls for a while',
);
