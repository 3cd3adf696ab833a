import type { ClientBuckets } from '../../lib/bounded/token-buckets.ts';
import { closedObject, millisecondsSchema } from '../../plugins-sdk/config.ts';
import { type Services, type Static, Type } from '../../plugins-sdk/index.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { clientBuckets } from '../shared/client-buckets.ts';

export const Limit = closedObject(
  {
    window: millisecondsSchema('Length of the window'),
    max: Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'Requests per window' }),
  },
  'For all keys of that name together; default none',
);
export type KeyLimit = Static<typeof Limit>;

const kept = new StateKey<Map<string, ClientBuckets>>('api keys');

/** Makes the function that returns the buckets of a limit. Clients with equal limits share them, each with a bucket of its own. */
export function bucketsOf({ states, stateEngine, workers }: Services) {
  const made = states.keep(kept, '', () => new Map<string, ClientBuckets>());
  return (limit: KeyLimit): ClientBuckets => {
    const text = `${limit.max}/${limit.window}`;
    const buckets = made.get(text) ?? clientBuckets(limit, stateEngine, 'api-keys', workers);
    made.set(text, buckets);
    return buckets;
  };
}
