/**
 * A sentence on what this plugin does. Every hook below shows what it is good for: keep the ones that you need.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./my-plugin.ts
 *       timeout: 1000
 *       config:
 *         minimum: 2
 * ```
 */
import { type SimplePlugin, type Static, Type } from 'signed-data-proxy/plugins-sdk';

/** The schema of `config`. The service checks it before it starts. */
export const configSchema = Type.Object(
  {
    minimum: Type.Optional(Type.Number({ default: 0, description: 'An answer with a number below this is refused' })),
    requiredHeader: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9-]+$',
        description: 'Header that clients must send, in lower case; default none',
      }),
    ),
    slow: Type.Optional(
      Type.Integer({ minimum: 1, default: 2000, description: 'Milliseconds from which an answer is reported as slow' }),
    ),
  },
  { additionalProperties: false },
);

/**
 * Makes the plugin, once, when the service starts. An error that is thrown here stops the start.
 *
 * @param report writes a line for the operator; never pass secrets to it.
 */
export default function createPlugin(
  { minimum = 0, requiredHeader, slow = 2000 }: Static<typeof configSchema>,
  report: (line: string) => void = console.error,
): SimplePlugin {
  return {
    name: 'my-plugin',
    hooks: {
      /** Runs before anything else for a request: reject it, or return nothing. */
      onHttpRequest({ headers }) {
        if (requiredHeader === undefined || headers[requiredHeader] !== undefined) return undefined;
        return { reject: true, status: 400, message: `Missing header: ${requiredHeader}` };
      },

      /** Runs before the upstream is asked: return other parameters, or nothing. */
      onBeforeApiCall({ parameters }) {
        const trimmed = Object.entries(parameters).map(([name, value]) => {
          return [name, typeof value === 'string' ? value.trim() : value];
        });
        return { parameters: Object.fromEntries(trimmed) };
      },

      /**
       * Runs before the answer is encoded: return other data, or nothing. Return nothing where you can: numbers that you
       * return have the digits of a double, and the upstream's may have more. An error that is thrown drops the request.
       */
      onAfterApiCall({ response }) {
        JSON.stringify(response.data, (_, value: unknown) => {
          if (typeof value === 'number' && value < minimum) throw new Error(`a number is below ${minimum}`);
          return value;
        });
      },

      /** Runs before the encoded bytes are signed: return other bytes, or nothing. An error that is thrown drops the request. */
      onBeforeSign({ data }) {
        if (/^0x0*$/.test(data)) throw new Error('there is nothing but zeros to sign');
      },

      /** Runs after a signed answer was sent, and can only observe. */
      onResponseSent({ requestId, api, endpoint, duration }) {
        if (duration >= slow) report(`slow: ${api}/${endpoint} took ${Math.round(duration)} ms, request ${requestId}`);
      },

      /** Runs after a request was refused or failed, and can only observe. */
      onError({ requestId, stage, status, error }) {
        if (status >= 500) report(`failed in ${stage}: ${status} ${error.message}, request ${requestId}`);
      },
    },
  };
}
