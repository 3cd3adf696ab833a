import { timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Check } from 'typebox/value';
import type { Taken } from '../../lib/bounded/token-buckets.ts';
import { closedObject, error, type Finding, isHeaderValue, warning } from '../../plugins-sdk/config.ts';
import {
  type AuthMethod,
  clientName,
  definePlugin,
  type Exchange,
  perMethod,
  type Services,
  type Static,
  Type,
  tooManyRequests,
} from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/observe.ts';
import { authObjects } from '../shared/auth-objects.ts';
import { headersKey, LIMIT_HEADERS, limitHeaders } from '../shared/client-buckets.ts';
import { bucketsOf, type KeyLimit, Limit } from './limits.ts';
import { describeApiKeys } from './openapi.ts';
import { NAME, refusals } from './refusals.ts';

const HEADER = NAME.toLowerCase();
const NamedKey = closedObject({
  name: Type.String({ pattern: '^[\\w.@-]{1,64}$', description: 'Whose key it is, for the log and the metrics' }),
  key: Type.String({ minLength: 1 }),
  rateLimit: Type.Optional(Limit),
});
const schema = closedObject({
  keys: Type.Array(Type.Union([Type.String({ minLength: 1 }), NamedKey]), {
    minItems: 1,
    description: 'Accepted keys: texts, or mappings with a name',
  }),
});
type Key = Static<typeof schema>['keys'][number];

function named(key: Key): Partial<Static<typeof NamedKey>> & { readonly key: string } {
  return typeof key === 'string' ? { key } : key;
}

/** Least characters of a key that cannot be guessed: 16 random hex digits are 64 bits. */
const UNGUESSABLE_LENGTH = 16;

function* checkKey(at: string, key: string): Iterable<Finding> {
  const message = `has fewer than ${UNGUESSABLE_LENGTH} characters and can be guessed: use a random one, such as 32 hex digits`;
  if (key.trim() !== key || !isHeaderValue(key))
    yield error(at, 'can never match: a header holds no such character there');
  else if (key.length < UNGUESSABLE_LENGTH) yield warning(at, message);
}

/** Checks the keys of one auth object. @param limits each client's limit by its name, of the objects before. */
function* checkKeys(at: string, keys: readonly Key[], limits: Map<string, KeyLimit | undefined>): Iterable<Finding> {
  const names = new Map<string, string | undefined>();
  for (const [i, { name, key, rateLimit }] of keys.map(named).entries()) {
    const path = `${at}.keys[${i}]`;
    yield* checkKey(name === undefined ? path : `${path}.key`, key);
    if (!names.has(key)) names.set(key, name);
    else yield (names.get(key) === name ? warning : error)(path, 'is the same key as one before it');
    if (name === undefined) continue;
    if (!limits.has(name)) limits.set(name, rateLimit);
    else if (!isDeepStrictEqual(limits.get(name), rateLimit))
      yield error(`${path}.rateLimit`, `"${name}" has another limit elsewhere: keys of one name share it`);
  }
}

/** Whether a text is the key. The time depends on the key alone: a text of another length takes as long as the key itself. */
function isKey(key: Buffer, given: Buffer): boolean {
  const isAsLong = key.length === given.length;
  return timingSafeEqual(key, isAsLong ? given : key) && isAsLong;
}

const LIMITED = 'this client has sent more than the rateLimit of its key lets in';
const headers = limitHeaders('api keys');

/** Makes the function that checks a sent key. @param counted counts the requests of clients with a name. */
function checkerOf(services: Services, counted: Measure<'client' | 'outcome'> | undefined) {
  const buckets = bucketsOf(services);
  const areLimitsShown = tellsIn(services.config);
  const accepted = perMethod(services.endpoints, 'apiKey', schema, ({ keys }) =>
    keys.map(named).map(({ key, name, rateLimit }) => {
      // All keys of a client share a bucket.
      const limit = rateLimit && { ...rateLimit, buckets: buckets(rateLimit) };
      return { bytes: Buffer.from(key), name, limit };
    }),
  );
  return (method: AuthMethod, exchange: Exchange): true | Promise<true> => {
    const sent = exchange.headers[HEADER];
    if (sent === undefined) throw refusals.missing();
    const given = Buffer.from(sent);
    const [match] = accepted(method).filter(({ bytes }) => isKey(bytes, given));
    if (match === undefined) throw refusals.wrong();
    const { name: client, limit } = match;
    if (client === undefined) return true;
    clientName.set(exchange, client);
    const letIn = (taken: Taken): true => {
      counted?.({ client, outcome: taken.granted === 0 ? 'limited' : 'accepted' }, 1);
      if (limit !== undefined && areLimitsShown) headers.note(exchange, { name: 'key', ...limit, left: taken.left });
      if (taken.granted === 0) throw tooManyRequests(taken, LIMITED);
      return true;
    };
    const taken = limit?.buckets.take(client) ?? { granted: 1, retryAfter: 0, left: Number.POSITIVE_INFINITY };
    return taken instanceof Promise ? taken.then(letIn) : letIn(taken);
  };
}

/** Returns the keys with a name that any of the endpoints accepts. */
function namedKeysIn(endpoints: Services['endpoints']): readonly Static<typeof NamedKey>[] {
  const methods = new Set(endpoints.flatMap(({ auth }) => auth));
  return [...methods].flatMap(({ type, ...method }) =>
    type === 'apiKey' && Check(schema, method) ? method.keys.filter((key) => typeof key !== 'string') : [],
  );
}

function hasLimit(endpoint: Services['endpoints'][number]): boolean {
  return namedKeysIn([endpoint]).some(({ rateLimit }) => rateLimit !== undefined);
}

/** Whether the config lets responses show what is left of a key's limit. */
function tellsIn(config: Services['config']): boolean {
  return headersKey.in(config) !== false;
}

/** Compares `X-Api-Key` with every configured key, in constant time, so that the timing reveals nothing. */
export const authApiKey = definePlugin({
  name: 'auth-api-key',
  auth: { apiKey: schema },
  credentials: [NAME],
  exposes: LIMIT_HEADERS,
  check({ endpoints }) {
    const limits = new Map<string, KeyLimit | undefined>();
    return authObjects(endpoints, 'apiKey', schema).flatMap(({ at, terms }) => [...checkKeys(at, terms.keys, limits)]);
  },
  openapi: ({ config, endpoints }) => describeApiKeys(endpoints.filter(hasLimit), tellsIn(config)),
  setup(services) {
    const help = 'Requests by clients whose API key has a name: accepted, or limited by the limit of the key';
    const initial = namedKeysIn(services.endpoints).flatMap(({ name: client, rateLimit }) =>
      (rateLimit ? ['accepted', 'limited'] : ['accepted']).map((outcome) => ({ client, outcome })),
    );
    const labels = ['client', 'outcome'] as const;
    const spec = { name: 'api_key_requests_total', help, labels, initial };
    const counted = initial.length > 0 ? services.meters.counter(spec) : undefined;
    return {
      hooks: {
        authenticate: { apiKey: checkerOf(services, counted) },
        ...(tellsIn(services.config) && services.endpoints.some(hasLimit) && { respond: headers.respond }),
      },
    };
  },
});
