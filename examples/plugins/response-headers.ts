/**
 * Adds headers to every response. The service's own headers can be replaced, but not removed.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./response-headers.ts
 *       config:
 *         headers: { Strict-Transport-Security: max-age=31536000 }
 * ```
 */
import { definePlugin, Type } from 'signed-data-proxy/plugins-sdk';

export const configSchema = Type.Object(
  { headers: Type.Record(Type.String(), Type.String(), { description: 'Values by name' }) },
  { additionalProperties: false },
);

export default definePlugin({
  name: 'response-headers',
  configSchema,
  setup: (_, { headers }) => ({ hooks: { respond: () => headers } }),
});
