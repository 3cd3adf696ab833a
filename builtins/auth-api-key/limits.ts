import type { ClientBuckets } from '../../lib/bounded/token-buckets.ts';
import { closedObject, millisecondsSchema } from '../../plugins-sdk/config.ts';
import { type Services, type Static, Type } from '../../plugins-sdk/index.ts';
import { clientBuckets } from '../shared/client-buckets.ts';
import { bucketState } from '../shared/limit-headers.ts';

export const Limit = closedObject(
  {
    window: millisecondsSchema('Length of the window'),
    max: Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'Requests per window' }),
  },
  'For all keys of that name together; default none',
);
export type KeyLimit = Static<typeof Limit>;

/** The limits of clients with a name; a client's keys share them. */
export class KeyLimits {
  readonly #buckets = new Map<string, ClientBuckets>();

  /** Returns the limit of a client: `take` counts a request, and `state` returns what is left. */
  of({ window, max }: KeyLimit, client: string, { stateEngine, workers }: Pick<Services, 'stateEngine' | 'workers'>) {
    const text = `${max}/${window}`;
    const buckets = this.#buckets.get(text) ?? clientBuckets({ max, window }, stateEngine, 'api-keys', workers);
    this.#buckets.set(text, buckets);
    return {
      take: () => buckets.take(client),
      state: () => bucketState('key', { max, window }, buckets.used(client)),
    };
  }
}
