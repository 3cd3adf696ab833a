import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { heapLimit } from '../../lib/process/heap-limit.ts';

/** Milliseconds between two probes of the event loop. */
const RESOLUTION_MS = 20;
/** The least delay, in milliseconds, that counts as a blocked event loop. */
const BLOCKED_MS = 100;

/** Metrics that are left out: gauges named like counters, a lag that each scrape resets, and a dozen series of heap spaces. */
const LEFT_OUT = /^nodejs_(?:active|eventloop_lag|heap_space)_/;

let begun: Registry | undefined;

/**
 * Returns the registry of process metrics: the library's own, under names that Node dashboards know, and a few more.
 * It is made once, because the library's observers cannot be stopped.
 * @param version the version of the service.
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
  // By default the library leaves it out of the sum over several processes.
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

/** Counts each delay once, so that several scrapers miss none and take none from each other. */
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
