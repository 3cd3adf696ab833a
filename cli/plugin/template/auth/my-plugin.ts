/**
 * A sentence on the clients that this plugin lets in: those that send one of the endpoint's tokens as `X-Token`.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./my-plugin.ts
 * apis:
 *   - auth: { type: my-plugin, tokens: ['${TOKEN}'] }
 * ```
 */

import { createHash } from 'node:crypto';
import { definePlugin, perMethod, Refusal, Type } from 'signed-data-proxy/plugins-sdk';

/** The schema of an `auth` object of this type, without `type`. */
const method = Type.Object(
  {
    tokens: Type.Array(Type.String({ minLength: 16 }), {
      minItems: 1,
      description: 'Any one of them lets a client in',
    }),
  },
  { additionalProperties: false },
);

/** Tokens are looked up by hash, so that the time of the look-up reveals nothing of them. */
const fingerprint = (token: string) => createHash('sha256').update(token).digest('hex');

export default definePlugin({
  name: 'my-plugin',
  auth: { 'my-plugin': method },
  // Hidden from the six hooks, and allowed in requests of other origins.
  credentials: ['X-Token'],
  setup({ endpoints }) {
    const tokensOf = perMethod(endpoints, 'my-plugin', method, ({ tokens }) => new Set(tokens.map(fingerprint)));
    return {
      hooks: {
        authenticate: {
          'my-plugin': (configured, { headers }) => {
            const token = headers['x-token'];
            if (token === undefined) throw new Refusal(401, 'Missing header: X-Token');
            if (!tokensOf(configured).has(fingerprint(token))) throw new Refusal(401, 'Invalid token');
            return true;
          },
        },
      },
    };
  },
});
