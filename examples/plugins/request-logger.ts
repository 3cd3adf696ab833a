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

/** Makes the plugin. @param write gets complete lines; the last one lacks its line feed. */
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
        // An unknown endpoint's id is a text of the client's choice, so it is not logged.
        return log({ requestId, endpoint: api === undefined ? null : `${api}/${endpoint}`, status, stage });
      },
    },
  };
}

/**
 * Returns a function that collects records for one turn of the event loop and writes their lines together. A stop waits for
 * the promises that hooks return, so that no line is lost.
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
