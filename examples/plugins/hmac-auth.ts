/**
 * Lets in clients that sign the body of their request. `X-Signature` is the HMAC-SHA256 of the body's bytes, in hex.
 *
 * ```sh
 * body='{"parameters":{"symbol":"ETHUSD"}}'
 * curl -d "$body" -H 'Content-Type: application/json' \
 *   -H "X-Signature: $(printf %s "$body" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)" …
 * ```
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./hmac-auth.ts
 * apis:
 *   - auth: { type: hmac, secret: '${HMAC_SECRET}' }
 * ```
 */
import { definePlugin, isHex, perMethod, Refusal, rawBody, Type, toBytes } from 'signed-data-proxy/plugins-sdk';

const method = Type.Object(
  { secret: Type.String({ minLength: 16, description: 'What the client signs with; keep it in a variable' }) },
  { additionalProperties: false },
);
const algorithm = { name: 'HMAC', hash: 'SHA-256' };
const refusals = {
  missing: () => new Refusal(401, 'Missing X-Signature header'),
  wrong: () => new Refusal(401, 'Invalid signature of the body'),
};

export default definePlugin({
  name: 'hmac-auth',
  auth: { hmac: method },
  credentials: ['X-Signature'],
  openapi: () => ({
    auth: {
      hmac: {
        scheme: { type: 'apiKey', in: 'header', name: 'X-Signature', description: 'HMAC-SHA256 of the body, in hex' },
        responses: { 401: { errors: [refusals.missing().message, refusals.wrong().message] } },
        title: 'signature of the body',
      },
    },
  }),
  setup({ endpoints }) {
    const keyOf = perMethod(endpoints, 'hmac', method, ({ secret }) =>
      crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, ['verify']),
    );
    return {
      hooks: {
        authenticate: {
          hmac: async (configured, exchange): Promise<true> => {
            const signature = `0x${exchange.headers['x-signature'] ?? ''}` as const;
            if (signature === '0x') throw refusals.missing();
            // A request that another plugin makes has no body.
            const body = rawBody.get(exchange);
            if (body === undefined || !isHex(signature)) throw refusals.wrong();
            const key = await keyOf(configured);
            // `verify` compares in constant time.
            if (!(await crypto.subtle.verify('HMAC', key, Uint8Array.from(toBytes(signature)), Uint8Array.from(body))))
              throw refusals.wrong();
            return true;
          },
        },
      },
    };
  },
});
