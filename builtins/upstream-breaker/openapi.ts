import type { Responses } from '../../plugins-sdk/openapi.ts';
import { unavailable } from '../shared/upstream-failure.ts';

/** Of endpoints whose API has a breaker. */
export const failures: Responses = {
  503: {
    description: 'The upstream has failed too often, and is asked no more for a while',
    errors: [unavailable('', 0).message],
    headers: {
      'Retry-After': { description: 'Seconds until it is asked again', required: false, schema: { type: 'integer' } },
    },
  },
};
