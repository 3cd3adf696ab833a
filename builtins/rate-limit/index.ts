import type { Taken } from '../../lib/bounded/token-buckets.ts';
import { forwardedClient } from '../../lib/http/client-address.ts';
import { optionalKey, warning } from '../../plugins-sdk/config.ts';
import {
  clientAddress,
  clientKey,
  definePlugin,
  type Exchange,
  Type,
  tooManyRequests,
} from '../../plugins-sdk/index.ts';
import { addressLimit, headersKey, LIMIT_HEADERS, limitHeaders } from '../shared/client-buckets.ts';
import { describeLimit } from './openapi.ts';

const requests = addressLimit('rate-limit', 'rateLimit', 'Requests', 100);
const trustKey = optionalKey(
  'server',
  'rateLimit.trustForwardedFor',
  Type.Union([Type.Boolean(), Type.Integer({ minimum: 1, maximum: 100 })], {
    description: 'true: the left-most X-Forwarded-For address is the client; n: the n-th from the right; default false',
  }),
);

const headers = limitHeaders('addresses');

/** Whether responses show what is left: by default only if the operator has chosen a limit. */
function tellsIn(config: Readonly<Record<string, unknown>>): boolean {
  return headersKey.in(config) ?? requests.keys.some((key) => key.in(config) !== undefined);
}

/** A token bucket per client address, taken from before anything else. The plugin also decides which address is the client's. */
export const rateLimit = definePlugin({
  name: 'rate-limit',
  keys: [...requests.keys, trustKey, headersKey],
  changesAnswers: false,
  exposes: LIMIT_HEADERS,
  check({ config }) {
    const trust = trustKey.in(config);
    if (trust === undefined || trust === false) return [];
    const message = 'clients can choose their own address unless a proxy in front sets X-Forwarded-For';
    return [warning('server.rateLimit.trustForwardedFor', message)];
  },
  behindProxy: (config) => (trustKey.in(config) ?? false) !== false,
  openapi: ({ config }) => describeLimit(tellsIn(config)),
  setup(services) {
    const { config, meters } = services;
    const trust = trustKey.in(config) ?? false;
    const { limit, buckets } = requests.in(services);
    const tells = tellsIn(config);
    const limited = meters.counter({ name: 'rate_limited_total', help: 'Requests refused by the rate limit' });
    const answer = (take: Taken, exchange: Exchange): undefined => {
      if (tells) headers.note(exchange, { name: 'address', ...limit, left: take.left });
      if (take.granted > 0) return undefined;
      limited({}, 1);
      throw tooManyRequests(take, 'its address has sent more than server.rateLimit lets in');
    };
    return {
      hooks: {
        admit: (exchange) => {
          const ip = forwardedClient(exchange.socketAddress, exchange.headers['x-forwarded-for'], trust);
          clientAddress.set(exchange, ip);
          const take = buckets.take(clientKey(ip));
          return take instanceof Promise ? take.then((taken) => answer(taken, exchange)) : answer(take, exchange);
        },
        ...(tells && { respond: headers.respond }),
      },
    };
  },
});
