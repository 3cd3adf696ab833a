/**
 * A sentence on how this plugin asks upstreams: each request is signed with an HMAC in `X-Signature`.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./my-plugin.ts
 *       config:
 *         secret: '${UPSTREAM_SECRET}'
 * ```
 */

import { createHmac } from 'node:crypto';
import { definePlugin, Type } from 'signed-data-proxy/plugins-sdk';

export default definePlugin({
  name: 'my-plugin',
  configSchema: Type.Object(
    { secret: Type.String({ minLength: 16, description: 'What the upstream knows, too' }) },
    { additionalProperties: false },
  ),
  setup(_services, { secret }) {
    return {
      hooks: {
        /** `next` makes the call, or throws what the client would get; ask it again, with another request, or not at all. */
        callApi(request, _exchange, { next }) {
          const signed = [request.method, request.url, request.body ?? ''].join('\n');
          const signature = createHmac('sha256', secret).update(signed).digest('hex');
          return next({ ...request, headers: { ...request.headers, 'X-Signature': signature } });
        },
      },
    };
  },
});
