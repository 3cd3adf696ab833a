/**
 * Pings a URL after an answer was sent, at most once per interval. So a dead man's switch knows that the service still signs.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./heartbeat.ts
 *       config:
 *         url: ${HEARTBEAT_URL}
 * ```
 */

import { type SimplePlugin, type Static, Type } from 'signed-data-proxy/plugins-sdk';
import { millisecondsSchema } from 'signed-data-proxy/plugins-sdk/config';
import { steadyClock } from 'signed-data-proxy/plugins-sdk/state';

export const configSchema = Type.Object(
  {
    url: Type.String({ description: 'What to GET; http or https' }),
    interval: Type.Optional(millisecondsSchema('Milliseconds between two pings', { default: 60_000 })),
  },
  { additionalProperties: false },
);

/**
 * @param now returns milliseconds that never decrease.
 * @throws Error if `url` cannot be pinged. The message does not show the value, which may be a secret.
 */
export default function heartbeat(
  config: Static<typeof configSchema>,
  now: () => number = steadyClock(),
): SimplePlugin {
  const { url, interval = 60_000 } = config;
  if (!isWebUrl(url)) throw new Error('url must be an http or https URL without user name and password');
  let next = 0;
  return {
    name: 'heartbeat',
    hooks: {
      async onResponseSent({ signal }) {
        if (now() < next) return;
        next = now() + interval;
        try {
          const response = await fetch(url, { signal });
          await response.body?.cancel();
        } catch {
          // The monitor raises the alarm when no ping arrives.
        }
      },
    },
  };
}

function isWebUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}
