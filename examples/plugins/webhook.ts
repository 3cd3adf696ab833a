/**
 * POSTs each signed answer to a URL, after the response: `{"requestId", "endpoint", "answer"}`. It is sent only once. If no
 * answer may be missed, keep an [`audit-log`](./audit-log.ts).
 *
 * At most `waiting` answers wait, and a stop waits for them. The log shows only the URL's origin: its path may be a secret.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./webhook.ts
 *       config:
 *         url: ${WEBHOOK_URL}
 * ```
 */
import { createHttpClient, definePlugin, Type } from 'signed-data-proxy/plugins-sdk';
import { httpTarget, millisecondsSchema } from 'signed-data-proxy/plugins-sdk/config';

export const configSchema = Type.Object(
  {
    url: Type.String({ pattern: '^https?://', description: 'Where answers go; keep it in a variable' }),
    timeout: Type.Optional(millisecondsSchema('Milliseconds for one; default 5000')),
    waiting: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Most that wait; default 1000, more are not sent' }),
    ),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: 'webhook',
  configSchema,
  setup({ background, log }, config) {
    const { timeout = 5000, waiting = 1000 } = config;
    const { url, headers } = httpTarget(config.url, { 'content-type': 'application/json' });
    const client = createHttpClient({ connections: 16 });
    const post = async (body: string) => {
      const { status } = await client.request({ method: 'POST', url, headers, body, timeout, maxBytes: 65_536 });
      if (status >= 300) throw new Error(`status ${status}`);
    };
    let underWay = 0;
    return {
      stop: () => client.close(),
      hooks: {
        onResponseSent({ requestId, api, endpoint, answer }) {
          if (underWay >= waiting) return log.warn('too many answers wait for the webhook: one is lost', { requestId });
          underWay += 1;
          const sent = post(JSON.stringify({ requestId, endpoint: `${api}/${endpoint}`, answer }))
            .catch((error) => log.warn('an answer did not reach the webhook', { requestId, error: String(error) }))
            .finally(() => (underWay -= 1));
          return background(sent);
        },
      },
    };
  },
});
