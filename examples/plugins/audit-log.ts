/**
 * Appends a line of JSON to a file for every signed answer, in the order in which they became certain:
 *
 * ```json
 * {"requestId":"0x…","endpoint":"prices/eth-usd","client":"ada","timestamp":1790000000,"signature":"0x…"}
 * ```
 *
 * The answer does not wait for its line, but a stop does. At most `waiting` lines wait. If the disk is too slow or full, lines
 * are lost, and the log says how many. Each of several workers appends its own lines.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./audit-log.ts
 *       config:
 *         file: /var/log/signed-data-proxy/audit.jsonl
 * ```
 */

import { appendFile } from 'node:fs/promises';
import { clientName, definePlugin, Type } from 'signed-data-proxy/plugins-sdk';
import { StateKey } from 'signed-data-proxy/plugins-sdk/state';

export const configSchema = Type.Object(
  {
    file: Type.String({ pattern: '^/', description: 'Absolute path of the file' }),
    waiting: Type.Optional(Type.Integer({ minimum: 1, description: 'Most lines that wait; default 10000' })),
  },
  { additionalProperties: false },
);

/** The lines that wait, and whether they are being written. They outlive a reload. */
const kept = new StateKey<{ lines: string[]; busy: boolean }>('audit lines');

export default definePlugin({
  name: 'audit-log',
  configSchema,
  setup({ background, log, states }, { file, waiting = 10_000 }) {
    const queue = states.keep(kept, file, () => ({ lines: [], busy: false }));
    const lost = (lines: number, error: unknown) => log.error('audit lines are lost', { lines, error: String(error) });
    const write = async () => {
      queue.busy = true;
      while (queue.lines.length > 0) {
        const batch = queue.lines.splice(0);
        await appendFile(file, batch.join('')).catch((error) => lost(batch.length, error));
      }
      queue.busy = false;
    };
    return {
      hooks: {
        concluded: (outcome, exchange) => {
          if (outcome.kind !== 'signed') return;
          if (queue.lines.length >= waiting) return lost(1, 'too many wait');
          const { requestId, endpoint } = exchange;
          const { timestamp, signature } = JSON.parse(outcome.response.json);
          const who = { requestId, endpoint: `${endpoint.api}/${endpoint.name}`, client: clientName.get(exchange) };
          queue.lines.push(`${JSON.stringify({ ...who, timestamp, signature })}\n`);
          if (!queue.busy) background(write());
        },
      },
    };
  },
});
