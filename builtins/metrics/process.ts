import { readdirSync, readFileSync } from 'node:fs';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { type Aggregator, Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { heapLimit } from '../../lib/process/heap-limit.ts';

/** Milliseconds between two looks at the event loop. */
const RESOLUTION_MS = 20;
/** Milliseconds of delay from which requests feel that the event loop is blocked. */
const BLOCKED_MS = 100;

const GC_BUCKETS = [0.001, 0.01, 0.1, 1, 5];
const GC_KINDS = new Map<unknown, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
]);

/**
 * Memory, CPU, files, event loop and garbage collection, under the names that dashboards for Node and for the
 * Prometheus client libraries know. The library's own collection cannot be stopped: its observers would outlive it.
 * @param version of the service.
 * @returns what ends the observation.
 */
export function observeProcess(registry: Registry, version: string): () => void {
  const registers = [registry];
  const gauge: MakeGauge = (name, help, read, aggregator = 'sum') =>
    new Gauge({
      name,
      help,
      registers,
      aggregator,
      collect() {
        this.set(read());
      },
    });
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'User and system CPU time of the process',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  gauge('process_start_time_seconds', 'Unix time at which the process started', startTime(), 'min');
  gauge('process_resident_memory_bytes', 'Resident memory of the process', () => process.memoryUsage.rss());
  gauge('nodejs_heap_size_total_bytes', 'Size of the heap', () => process.memoryUsage().heapTotal);
  gauge('nodejs_heap_size_used_bytes', 'Used part of the heap', () => process.memoryUsage().heapUsed);
  gauge('nodejs_heap_size_limit_bytes', 'Size that the heap may have', heapLimit);
  gauge('nodejs_external_memory_bytes', 'Memory of objects outside the heap', () => process.memoryUsage().external);
  const about = (name: string, help: string, labels: Readonly<Record<string, string>>) =>
    new Gauge({ name, help, labelNames: Object.keys(labels), registers, aggregator: 'first' }).set(labels, 1);
  about('nodejs_version_info', 'Version of Node.js; always 1', { version: process.version });
  about('signed_data_proxy_build_info', 'Version of the service, and of Node.js; always 1', {
    version,
    node: process.version,
  });
  observeFiles(gauge);
  const stops = [observeEventLoop(registers), observeCollections(registers)];
  return () => {
    for (const stop of stops) stop();
  };
}

type MakeGauge = (name: string, help: string, read: () => number, across?: Aggregator) => void;

function startTime(): () => number {
  const started = Date.now() / 1000 - process.uptime();
  return () => started;
}

/** Where the system tells, as Linux does. */
function observeFiles(gauge: MakeGauge): void {
  const files = '/proc/self/fd';
  try {
    const [, most] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    readdirSync(files);
    if (most !== undefined) gauge('process_max_fds', 'File descriptors that the process may open', () => Number(most));
  } catch {
    return;
  }
  // Less the descriptor that listing them opens.
  gauge('process_open_fds', 'File descriptors that are open', () => readdirSync(files).length - 1);
}

/** Counts every delay once, so that scrapes, however many ask, miss none and take none from each other. */
function observeEventLoop(registers: Registry[]): () => void {
  const blocked = new Counter({
    name: 'nodejs_eventloop_blocked_seconds_total',
    help: `Time that the event loop was blocked, in delays of at least ${BLOCKED_MS} ms`,
    registers,
  });
  let last = performance.now();
  const look = setInterval(() => {
    const now = performance.now();
    const delay = now - last - RESOLUTION_MS;
    last = now;
    if (delay >= BLOCKED_MS) blocked.inc(delay / 1000);
  }, RESOLUTION_MS).unref();
  return () => clearInterval(look);
}

function observeCollections(registers: Registry[]): () => void {
  const durations = new Histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Duration of garbage collections by kind',
    labelNames: ['kind'],
    buckets: GC_BUCKETS,
    registers,
  });
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) durations.observe({ kind: kindOf(entry) }, entry.duration / 1000);
  });
  observer.observe({ entryTypes: ['gc'] });
  return () => observer.disconnect();
}

function kindOf(entry: PerformanceEntry): string {
  const detail: unknown = 'detail' in entry ? entry.detail : undefined;
  const kind = typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined;
  return GC_KINDS.get(kind) ?? 'other';
}
