/**
 * Writes a line of JSON to stdout for every signed answer, and one for every request that was refused or failed.
 *
 * ```json
 * {"requestId":"0x…","endpoint":"prices/latest","status":200,"duration":12.5}
 * {"requestId":"0x…","endpoint":"prices/latest","status":502,"stage":"callApi"}
 * ```
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./request-logger.ts
 * ```
 */
import { type SimplePlugin, type Static, Type } from 'signed-data-proxy/plugins-sdk';

export const configSchema = Type.Object(
  {
    errors: Type.Optional(
      Type.Boolean({ default: true, description: 'Also requests that were refused or failed; default true' }),
    ),
  },
  { additionalProperties: false },
);

/** @param write takes complete lines, the last without its line feed. */
export default function requestLogger(
  { errors = true }: Static<typeof configSchema> = {},
  write: (lines: string) => void = console.log,
): SimplePlugin {
  const log = lineBuffer(write);
  return {
    name: 'request-logger',
    hooks: {
      onResponseSent({ requestId, api, endpoint, status, duration }) {
        return log({ requestId, endpoint: `${api}/${endpoint}`, status, duration });
      },
      onError({ requestId, api, endpoint, status, stage }) {
        if (!errors) return undefined;
        // The id of an unknown endpoint is the client's own text.
        return log({ requestId, endpoint: api === undefined ? null : `${api}/${endpoint}`, status, stage });
      },
    },
  };
}

/**
 * Collects what is logged in one turn of the event loop and writes it at once. The service waits for hooks when it stops,
 * so that returning the promise keeps the last lines from getting lost.
 */
function lineBuffer(write: (lines: string) => void): (record: object) => Promise<void> {
  let lines: string[] = [];
  let written: Promise<void> | undefined;
  const flush = () => {
    const text = lines.join('\n');
    lines = [];
    written = undefined;
    write(text);
  };
  return (record) => {
    lines.push(JSON.stringify(record));
    written ??= new Promise<void>((resolve) => setImmediate(resolve)).then(flush);
    return written;
  };
}
