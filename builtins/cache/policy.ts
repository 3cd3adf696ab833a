import { closedObject, DURATION, millisecondsSchema, optionalKey } from '../../plugins-sdk/config.ts';
import { type Endpoint, Type } from '../../plugins-sdk/index.ts';

export const cacheKey = optionalKey(
  'apiOrEndpoint',
  'cache',
  closedObject(
    {
      // No timer is set for it, so there is no upper limit.
      maxAge: Type.Integer({ minimum: 1, [DURATION]: 100, description: 'How long an answer is kept' }),
      staleWhileRevalidate: Type.Optional(
        millisecondsSchema('How much longer it is given out while a new one is made; default none'),
      ),
      staleIfError: Type.Optional(
        millisecondsSchema('How much longer it stands in while the upstream fails; default none'),
      ),
    },
    'Keeps signed answers, in sync mode; default none',
  ),
);

/** The only mode whose answers are kept. */
export const MODE = 'sync';

/** Returns the cache policy of an endpoint; undefined if its answers are not kept. */
export function policyOf(endpoint: Endpoint) {
  return endpoint.mode === MODE ? cacheKey.of(endpoint) : undefined;
}
