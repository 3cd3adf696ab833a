/** The metrics tell of the process what the system says of it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Registry } from 'prom-client';
import { observeProcess } from '../../builtins/metrics/process.ts';
import { Scrape } from '../support/metrics.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

function block(milliseconds: number): void {
  for (const end = performance.now() + milliseconds; performance.now() < end; );
}

function observed() {
  const registry = new Registry();
  const stop = observeProcess(registry, '1.2.3');
  return { stop, scrape: async () => new Scrape(await registry.metrics()) };
}

const collections = (found: Scrape) =>
  Object.values(found.table('nodejs_gc_duration_seconds_count')).reduce((sum, count) => sum + count, 0);

describe('what the metrics say of the process', () => {
  it('is what Node says of it', async () => {
    const { stop, scrape } = observed();
    const before = process.cpuUsage();
    const found = await scrape();
    stop();
    const cpu = found.value('process_cpu_seconds_total') ?? 0;
    const after = process.cpuUsage();
    assert.ok(cpu >= (before.user + before.system) / 1e6 && cpu <= (after.user + after.system) / 1e6);
    const started = found.value('process_start_time_seconds') ?? 0;
    assert.ok(Math.abs(Date.now() / 1000 - process.uptime() - started) < 1, `${started}`);
    const used = found.value('nodejs_heap_size_used_bytes') ?? 0;
    const total = found.value('nodejs_heap_size_total_bytes') ?? 0;
    const resident = found.value('process_resident_memory_bytes') ?? 0;
    assert.ok(used > 1e6 && used < total && total < resident);
    assert.ok((found.value('nodejs_external_memory_bytes') ?? 0) > 0);
    assert.equal(found.value('nodejs_version_info', { version: process.version }), 1);
  });

  it('counts garbage collections until it ends', async () => {
    const { stop, scrape } = observed();
    let found = await scrape();
    while ((found.table('nodejs_gc_duration_seconds_count').major ?? 0) === 0) {
      collectGarbage();
      await sleep(5);
      found = await scrape();
    }
    // Those that were told of too late are lost, with the observer.
    stop();
    const counted = collections(await scrape());
    collectGarbage();
    await sleep(50);
    assert.equal(collections(await scrape()), counted);
  });

  it('counts how long the event loop was blocked, whoever asks and how often, until it ends', async () => {
    const { stop, scrape } = observed();
    const blocked = (found: Scrape) => found.value('nodejs_eventloop_blocked_seconds_total') ?? Number.NaN;
    await sleep(60);
    block(300);
    await sleep(60);
    const first = await scrape();
    assert.ok(blocked(first) >= 0.25, `${blocked(first)}`);
    const second = await scrape();
    assert.ok(blocked(second) >= blocked(first));
    stop();
    const last = blocked(await scrape());
    block(150);
    await sleep(60);
    assert.equal(blocked(await scrape()), last);
  });
});
