import { hash, timingSafeEqual } from 'node:crypto';
import { Check } from 'typebox/value';
import {
  type AuthMethod,
  authPath,
  type CheckContext,
  definePlugin,
  type EndpointDraft,
  error,
  type Finding,
  isHeaderValue,
  perMethod,
  Refusal,
  Type,
  warning,
} from '../plugins-sdk/index.ts';

const NAME = 'X-Api-Key';
const HEADER = NAME.toLowerCase();
const refusals = {
  missing: () => new Refusal(401, 'Missing X-Api-Key header'),
  wrong: () => new Refusal(401, 'Invalid API key'),
};
const schema = Type.Object(
  { keys: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, description: 'Keys that are accepted' }) },
  { additionalProperties: false },
);

/** Characters from which a key cannot be found by trying: 16 random hex digits are 64 bits. */
const SHORTEST = 16;

/** @param seen methods that were looked at: endpoints share the keys of their API. */
function shortKeys(endpoint: EndpointDraft, seen: Set<AuthMethod>): Finding[] {
  return endpoint.auth.flatMap((given, index) => {
    const { type, ...method } = given;
    if (seen.has(given) || type !== 'apiKey' || !Check(schema, method)) return [];
    seen.add(given);
    return method.keys.flatMap((key, i) => {
      const at = `${authPath(endpoint, index)}.keys[${i}]`;
      if (key.trim() !== key || !isHeaderValue(key))
        return [error(at, 'can never match: a header holds no such character there')];
      const message = `has fewer than ${SHORTEST} characters and can be guessed: use a random one, such as 32 hex digits`;
      return key.length < SHORTEST ? [warning(at, message)] : [];
    });
  });
}

/** Bytes of the longest key that is compared as it is; of longer keys the hashes are compared. */
const ROOM = 64;

/** A buffer that has the same length for every key: the key and its length, or its hash and 0. */
function comparable(key: string): Buffer {
  const bytes = Buffer.alloc(ROOM + 1);
  const length = Buffer.byteLength(key);
  if (length > ROOM) hash('sha256', key, 'buffer').copy(bytes);
  else bytes.write(key);
  bytes[ROOM] = length > ROOM ? 0 : length;
  return bytes;
}

/** `X-Api-Key` against the configured keys; every key is compared, in constant time, so that timing tells nothing. */
export const authApiKey = definePlugin({
  name: 'auth-api-key',
  budget: 'none',
  auth: { apiKey: schema },
  credentials: [NAME],
  check({ endpoints }: CheckContext) {
    const seen = new Set<AuthMethod>();
    return endpoints.flatMap((endpoint) => shortKeys(endpoint, seen));
  },
  openapi: () => ({
    auth: {
      apiKey: {
        scheme: { type: 'apiKey', in: 'header', name: NAME, description: 'A key that the operator gave you' },
        responses: {
          401: {
            description: 'The key is missing or wrong',
            errors: Object.values(refusals).map((refusal) => refusal().message),
          },
        },
        title: 'API key',
      },
    },
  }),
  setup({ endpoints }) {
    const accepted = perMethod(endpoints, 'apiKey', schema, ({ keys }) => keys.map(comparable));
    return {
      hooks: {
        authenticate: {
          apiKey: (method, { headers }) => {
            const sent = headers[HEADER];
            if (sent === undefined) throw refusals.missing();
            const given = comparable(sent);
            const matches = accepted(method).filter((known) => timingSafeEqual(known, given));
            if (matches.length === 0) throw refusals.wrong();
            return true;
          },
        },
      },
    };
  },
});
