/**
 * Asks the upstream again after a failure that may pass: a connection that failed, a timeout, a 408, 425, 429 or 5xx. Each call
 * has the API's `timeout` and takes a slot of its own; between two calls it holds none.
 *
 * Set it only where being asked twice does the upstream no harm. List it before plugins that sign requests: each call is then
 * signed anew.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./retry.ts
 *       config: { backoff: 200ms } # the default
 * apis:
 *   - retry: 3 # calls; endpoints may have a value of their own
 * ```
 */
import { configKey, definePlugin, isRefusal, millisecondsSchema, Type } from 'signed-data-proxy/plugins-sdk';

const calls = Type.Integer({ minimum: 1, maximum: 10, description: 'Most upstream calls for an answer; default 1' });
const retry = configKey('shared', 'retry', Type.Optional(calls));

export const configSchema = Type.Object({
  backoff: Type.Optional(millisecondsSchema('Milliseconds before the second call, doubled each time; default 200')),
});

const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

function mayPass(error: unknown): boolean {
  if (!isRefusal(error)) return false;
  const { upstreamStatus, reason = '' } = error;
  return upstreamStatus === undefined ? /^(network|timeout): /.test(reason) : PASSING.has(upstreamStatus);
}

/** Ends early when the client leaves. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => resolve(clearTimeout(timer)));
  });
}

export default definePlugin({
  name: 'retry',
  // The number of calls bounds it.
  budget: 'none',
  configSchema,
  keys: [retry],
  setup: (_, { backoff = 200 }) => ({
    hooks: {
      callApi: async (request, { endpoint }, { next, signal }) => {
        for (let left = retry.of(endpoint) ?? 1, wait = backoff; ; left--, wait *= 2) {
          try {
            return await next(request);
          } catch (error) {
            if (left === 1 || !mayPass(error)) throw error;
            // Clients that failed together do not come back together.
            await pause(wait * (0.5 + Math.random() / 2), signal);
            if (signal.aborted) throw error;
          }
        }
      },
    },
  }),
});
