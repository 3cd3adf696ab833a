/**
 * Posts to a Slack incoming webhook when requests fail, at most one message per interval. Each message says how many requests
 * have failed since the one before.
 *
 * Messages hold names from the config, the stage, the status and the text that the client got. They hold no parameters,
 * no data, and nothing else that a client can choose.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./slack-alerts.ts
 *       config:
 *         webhookUrl: ${SLACK_WEBHOOK_URL}
 * ```
 */
import { type ErrorContext, type SimplePlugin, type Static, Type } from 'signed-data-proxy/plugins-sdk';
import { millisecondsSchema } from 'signed-data-proxy/plugins-sdk/config';
import { steadyClock } from 'signed-data-proxy/plugins-sdk/state';

export const configSchema = Type.Object(
  {
    webhookUrl: Type.String({ description: 'URL of a Slack incoming webhook; keep it in a variable' }),
    minStatus: Type.Optional(
      Type.Integer({ minimum: 400, maximum: 599, default: 500, description: 'Lowest status that is worth an alert' }),
    ),
    interval: Type.Optional(millisecondsSchema('Milliseconds between two messages, at least', { default: 60_000 })),
  },
  { additionalProperties: false },
);

/**
 * @param now returns milliseconds that never decrease.
 * @throws Error if `webhookUrl` cannot be posted to. The message does not show the value, which is a secret.
 */
export default function slackAlerts(
  config: Static<typeof configSchema>,
  now: () => number = steadyClock(),
): SimplePlugin {
  const { webhookUrl, minStatus = 500, interval = 60_000 } = config;
  if (!isWebUrl(webhookUrl)) throw new Error('webhookUrl must be an http or https URL without user name and password');
  let next = 0;
  let untold = 0;
  return {
    name: 'slack-alerts',
    hooks: {
      async onError(failure) {
        if (failure.status < minStatus) return;
        untold += 1;
        if (now() < next) return;
        next = now() + interval;
        const told = untold;
        untold = 0;
        try {
          await post(webhookUrl, alertText(failure, told), failure.signal);
        } catch (error) {
          untold += told;
          throw error;
        }
      },
    },
  };
}

function alertText({ api, endpoint, status, error, stage, requestId }: ErrorContext, count: number): string {
  // An unknown endpoint's id is a text of the client's choice, so it is not shown.
  const where = api === undefined ? 'unknown endpoint' : `${api}/${endpoint}`;
  const text = `${where}: ${status} ${error.message} (${stage}, request ${requestId})`;
  return escapeText(count === 1 ? text : `${text}\n${count} failures since the last message, this one included`);
}

/** Escapes a text, in which Slack would otherwise read `<!channel>` and links (Slack, "Formatting message text"). */
function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Posts a text. @throws Error whose message is fit for a log; that of `fetch` may show the URL. */
async function post(url: string, text: string, signal: AbortSignal): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  const request = { method: 'POST', headers, body: JSON.stringify({ text }), signal, redirect: 'error' } as const;
  const response = await fetch(url, request).catch(() => undefined);
  await response?.body?.cancel().catch(() => undefined);
  if (response === undefined) throw new Error('the webhook cannot be reached');
  if (!response.ok) throw new Error(`the webhook answered ${response.status}`);
}

function isWebUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}
