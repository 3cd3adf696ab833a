/**
 * Signs upstream requests. `X-Signature` is the HMAC-SHA256, in hex, of method, URL, `X-Timestamp` (Unix seconds) and body, with
 * a line feed after each of the first three.
 *
 * All attempts of `retry` and calls of `mirrors` have the same signature.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./upstream-hmac.ts
 * apis:
 *   - hmac: { secret: '${UPSTREAM_SECRET}' } # endpoints may have a value of their own
 * ```
 */
import { configKey, definePlugin, perEndpoint, Type, toHex } from 'signed-data-proxy/plugins-sdk';

const config = Type.Object(
  { secret: Type.String({ minLength: 16, description: 'What requests are signed with; keep it in a variable' }) },
  { additionalProperties: false, description: 'Signs upstream requests' },
);
const hmac = configKey('apiOrEndpoint', 'hmac', Type.Optional(config));
const algorithm = { name: 'HMAC', hash: 'SHA-256' };
const bytes = (text: string) => new TextEncoder().encode(text);

export default definePlugin({
  name: 'upstream-hmac',
  keys: [hmac],
  setup({ endpoints, now }) {
    const keyOf = perEndpoint(endpoints, async (endpoint) => {
      const secret = hmac.of(endpoint)?.secret;
      return secret && crypto.subtle.importKey('raw', bytes(secret), algorithm, false, ['sign']);
    });
    return {
      hooks: {
        callApi: async (request, { endpoint }, { next }) => {
          const key = await keyOf(endpoint);
          if (!key) return undefined;
          const { method, url, headers, body = '' } = request;
          const timestamp = String(Math.floor(now() / 1000));
          const signed = bytes([method, url, timestamp, body].join('\n'));
          const signature = toHex(new Uint8Array(await crypto.subtle.sign('HMAC', key, signed))).slice(2);
          return next({ ...request, headers: { ...headers, 'X-Timestamp': timestamp, 'X-Signature': signature } });
        },
      },
    };
  },
});
