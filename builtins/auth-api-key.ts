import { hash, timingSafeEqual } from 'node:crypto';
import { definePlugin, perMethod, Refusal, Type } from '../plugins-sdk/index.ts';

const HEADER = 'x-api-key';
const schema = Type.Object(
  { keys: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, description: 'Keys that are accepted' }) },
  { additionalProperties: false },
);

/** Equal lengths for the comparison, whatever the keys are. */
function digest(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** `X-Api-Key` against the configured keys; every key is compared, in constant time, so that timing tells nothing. */
export const authApiKey = definePlugin({
  name: 'auth-api-key',
  budget: 'none',
  auth: { apiKey: schema },
  credentials: ['X-Api-Key'],
  setup({ endpoints }) {
    const digests = perMethod(endpoints, 'apiKey', schema, ({ keys }) => keys.map(digest));
    return {
      hooks: {
        authenticate: {
          apiKey: (method, { headers }) => {
            const sent = headers[HEADER];
            if (sent === undefined) throw new Refusal(401, 'Missing X-Api-Key header');
            const given = digest(sent);
            const matches = digests(method).filter((known) => timingSafeEqual(known, given));
            if (matches.length === 0) throw new Refusal(401, 'Invalid API key');
            return true;
          },
        },
      },
    };
  },
});
