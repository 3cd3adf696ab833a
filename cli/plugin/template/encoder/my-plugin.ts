/**
 * A sentence on how this plugin encodes answers: as the UTF-8 text of one member, if an endpoint names it.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./my-plugin.ts
 * apis:
 *   - endpoints:
 *       - textOf: symbol
 * ```
 */
import { configKey, definePlugin, Refusal, Type } from 'signed-data-proxy/plugins-sdk';

/** A config key of endpoints, which the service checks like its own. It is not part of their IDs. */
const textOf = configKey(
  'endpoint',
  'textOf',
  Type.Optional(Type.String({ minLength: 1, description: 'The member whose text is signed' })),
);

export default definePlugin({
  name: 'my-plugin',
  keys: [textOf],
  setup: () => ({
    hooks: {
      encode({ data }, _question, { endpoint }) {
        const member = textOf.of(endpoint);
        // This endpoint is not for this plugin: the next encoder is asked.
        if (member === undefined) return undefined;
        const text: unknown = Object.getOwnPropertyDescriptor(Object(data), member)?.value;
        if (typeof text !== 'string')
          throw new Refusal(502, 'API call failed', { reason: `the answer has no text "${member}"` });
        const bytes = `0x${Buffer.from(text).toString('hex')}` as const;
        // The bytes to sign, and the member of the response that shows them.
        return { bytes, field: 'data', value: bytes };
      },
    },
  }),
});
