import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { heapLimit } from '../../lib/process/heap-limit.ts';

/** Milliseconds between two looks at the event loop. */
const RESOLUTION_MS = 20;
/** Milliseconds of delay from which requests feel that the event loop is blocked. */
const BLOCKED_MS = 100;

/** Gauges of the library with names of counters, its lag that each scrape sets back, and the parts of the heap, a dozen series each. */
const LEFT_OUT = /^nodejs_(?:active|eventloop_lag|heap_space)_/;

let begun: Registry | undefined;

/**
 * What the library observes of a process, under the names that dashboards for Node know, and a little more. It begins once, and for
 * good: the library's observers have no end.
 * @param version of the service.
 */
export function processMetrics(version: string): Registry {
  begun ??= observed(version);
  return begun;
}

function observed(version: string): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  for (const { name } of registry.getMetricsAsArray()) if (LEFT_OUT.test(name)) registry.removeSingleMetric(name);
  // The library leaves it out where several processes answer for one.
  Object.assign(registry.getSingleMetric('process_start_time_seconds') ?? {}, { aggregator: 'min' });
  new Gauge({
    ...{ name: 'nodejs_heap_size_limit_bytes', help: 'Size that the heap may have', registers },
    collect() {
      this.set(heapLimit());
    },
  });
  const about = { name: 'signed_data_proxy_build_info', help: 'Version of the service, and of Node.js; always 1' };
  const versions = { version, node: process.version };
  new Gauge({ ...about, labelNames: Object.keys(versions), aggregator: 'first', registers }).set(versions, 1);
  countBlocks(registers);
  return registry;
}

/** Counts every delay once, so that scrapes, however many ask, miss none and take none from each other. */
function countBlocks(registers: Registry[]): void {
  const blocked = new Counter({
    name: 'nodejs_eventloop_blocked_seconds_total',
    help: `Time that the event loop was blocked, in delays of at least ${BLOCKED_MS} ms`,
    registers,
  });
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    const delay = now - last - RESOLUTION_MS;
    last = now;
    if (delay >= BLOCKED_MS) blocked.inc(delay / 1000);
  }, RESOLUTION_MS).unref();
}
