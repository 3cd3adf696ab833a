/**
 * A mode of its own: server-sent events, a signed value now and then every `every`, until the client leaves.
 *
 * Each value is an answer by itself: signed, settled, counted. One that fails is an event, too, of the type `failure` with
 * `{"error", "status"}`, and the stream goes on. Where the endpoint has a cache, all of its clients share the upstream's calls.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./live.ts
 * apis:
 *   - endpoints:
 *       - name: eth-usd
 *         mode: live
 *         every: 5s
 * ```
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { configKey, definePlugin, isRefusal, millisecondsSchema, type Run, Type } from 'signed-data-proxy/plugins-sdk';

const mediaType = 'text/event-stream';
const headers = { 'Content-Type': mediaType, 'Cache-Control': 'no-store' };
const every = configKey('apiOrEndpoint', 'every', Type.Optional(millisecondsSchema('Milliseconds between values')));

function failure(error: unknown): string {
  // What a refusal says is meant for clients; other errors are not.
  const { status, message } = isRefusal(error) ? error : { status: 500, message: 'Internal server error' };
  return `event: failure\ndata: ${JSON.stringify({ error: message, status })}\n\n`;
}

async function* events(run: Run, ms: number, signal: AbortSignal) {
  while (!signal.aborted) {
    yield await run().then(({ json }) => `data: ${json}\n\n`, failure);
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }
}

const title = 'signed values come as server-sent events until you leave';
const responses = (_: string, text: string) => ({
  200: { description: `Each event is an answer: ${text}`, mediaType },
});

export default definePlugin({
  name: 'live',
  budget: 'none',
  keys: [every],
  modes: { live: { repeats: true } },
  openapi: () => ({ modes: { live: { title, early: true, responses } } }),
  setup: () => ({
    hooks: {
      present: {
        live: (run, exchange) => {
          const body = events(run, every.of(exchange.endpoint) ?? 1000, exchange.signal);
          return { status: 200, headers, body };
        },
      },
    },
  }),
});
