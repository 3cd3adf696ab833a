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

/** What `config` may hold. The service checks it before it starts. */
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
 * Called once, when the service starts. An error that is thrown here stops the start.
 *
 * @param report takes a line for the operator; never hand it secrets.
 */
export default function createPlugin(
  { minimum = 0, requiredHeader, slow = 2000 }: Static<typeof configSchema>,
  report: (line: string) => void = console.error,
): SimplePlugin {
  return {
    name: 'my-plugin',
    hooks: {
      /** Before anything else is done for the client: reject, or return nothing. */
      onHttpRequest({ headers }) {
        if (requiredHeader === undefined || headers[requiredHeader] !== undefined) return undefined;
        return { reject: true, status: 400, message: `Missing header: ${requiredHeader}` };
      },

      /** Before the upstream is asked: return other parameters, or nothing. */
      onBeforeApiCall({ parameters }) {
        const trimmed = Object.entries(parameters).map(([name, value]) => {
          return [name, typeof value === 'string' ? value.trim() : value];
        });
        return { parameters: Object.fromEntries(trimmed) };
      },

      /**
       * Before the answer is encoded: return other data, or nothing. Return nothing where you can: numbers that you return have the
       * digits of a double, and those of the upstream may have more. Whatever throws drops the request.
       */
      onAfterApiCall({ response }) {
        JSON.stringify(response.data, (_, value: unknown) => {
          if (typeof value === 'number' && value < minimum) throw new Error(`a number is below ${minimum}`);
          return value;
        });
      },

      /** Before the encoded bytes are signed: return other bytes, or nothing. Whatever throws drops the request. */
      onBeforeSign({ data }) {
        if (/^0x0*$/.test(data)) throw new Error('there is nothing but zeros to sign');
      },

      /** After a signed answer was sent: observe. */
      onResponseSent({ requestId, api, endpoint, duration }) {
        if (duration >= slow) report(`slow: ${api}/${endpoint} took ${Math.round(duration)} ms, request ${requestId}`);
      },

      /** After a request was refused or failed: observe. */
      onError({ requestId, stage, status, error }) {
        if (status >= 500) report(`failed in ${stage}: ${status} ${error.message}, request ${requestId}`);
      },
    },
  };
}
