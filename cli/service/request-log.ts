import { ContextKey, clientName, definePlugin, type Exchange, type Log } from '../../plugins-sdk/index.ts';
import type { CallEvent, StageEvent } from '../../plugins-sdk/kernel.ts';

/** The part of its budget from which on a plugin is worth a line. */
const SLOW = 0.5;

/** Stages with durations, as one text. */
function timesOf(entries: readonly { readonly stage: string; readonly milliseconds: number }[]): string {
  return entries.map(({ stage, milliseconds }) => `${stage} ${round(milliseconds)}`).join(', ');
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}

function response(log: Log, exchange: Exchange, status: number): void {
  const { requestId, method, route, resolved } = exchange;
  const milliseconds = Math.round(exchange.elapsed() * 10) / 10;
  const what = resolved === undefined ? `${method} ${route}` : resolved.id;
  const client = clientName.get(exchange);
  const fields: Record<string, string> = { requestId };
  if (resolved !== undefined) fields.endpoint = `${resolved.api}/${resolved.name}`;
  if (client !== undefined) fields.client = client;
  log.info(`${what} ${status} ${milliseconds}ms`, fields);
}

/** A plugin that takes long or fails: which hook it was, and what each of its hooks has used of the budget. */
function call(log: Log, { exchange, plugin, stage, budget, outcome }: CallEvent): void {
  if (budget === undefined) return;
  const { total, remaining, spent } = budget;
  if (outcome === 'done' && remaining > total * (1 - SLOW)) return;
  const used = spent.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  const before = used - (spent.at(-1)?.milliseconds ?? 0);
  // The hook with which it became slow is the one to name, not those that came after.
  if (outcome === 'done' && (used < total * SLOW || before >= total * SLOW)) return;
  const what = outcome === 'done' ? 'is slow' : outcome === 'failed' ? 'failed' : 'is out of budget';
  const { requestId } = exchange;
  log.warn(`plugin "${plugin}" ${what} in ${stage}`, {
    requestId,
    budget: `${round(used)} of ${total} ms`,
    used: timesOf(spent),
  });
}

/** Of a timeline: a mode may run the rest as often as it likes. */
const MOST_ENTRIES = 64;

/**
 * One line per request; one per plugin that failed or used more than half of its budget.
 * @param tracing whether to show what each stage took, in a line of its own and in the request's timeline.
 */
export function requestLog(tracing: boolean) {
  return definePlugin({
    name: 'request-log',
    budget: 'none',
    required: true,
    setup({ log }) {
      const timeline = new ContextKey<{ stage: string; milliseconds: number }[]>('timeline');
      const trace = ({ exchange, stage, milliseconds }: StageEvent) => {
        // One list for the request and its forks: work that others may wait for, too, stands where it was begun.
        const entries = timeline.get(exchange) ?? [];
        if (entries.length === 0) timeline.set(exchange, entries);
        if (entries.length < MOST_ENTRIES) entries.push({ stage, milliseconds });
        log.debug(`stage ${stage}`, { requestId: exchange.requestId, milliseconds: round(milliseconds) });
      };
      return {
        observe: {
          ...(tracing && { stage: trace }),
          call: (event) => call(log, event),
          response: (exchange, status) => {
            response(log, exchange, status);
            const entries = timeline.get(exchange);
            if (entries !== undefined) log.debug('timeline', { requestId: exchange.requestId, ms: timesOf(entries) });
          },
        },
      };
    },
  });
}
