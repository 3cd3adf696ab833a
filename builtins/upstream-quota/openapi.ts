import type { Responses } from '../../plugins-sdk/openapi.ts';
import { unavailable } from '../shared/upstream-failure.ts';

/** Of endpoints whose API has a quota. */
export const failures: Responses = {
  503: {
    description: 'The quota of calls to the upstream is used up, or it wants no calls for a while',
    errors: [unavailable('', 0).message],
    headers: {
      'Retry-After': { description: 'Seconds until it is asked again', required: false, schema: { type: 'integer' } },
    },
  },
};
