/** The metrics tell of the process what the system says of it. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { processMetrics } from '../../builtins/metrics/process.ts';
import { Scrape } from '../support/metrics.ts';
import { eventually } from '../support/wait.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

function block(milliseconds: number): void {
  for (const end = performance.now() + milliseconds; performance.now() < end; );
}

const registry = processMetrics('1.2.3');
const scrape = async () => new Scrape(await registry.metrics());

describe('what the metrics say of the process', () => {
  it('is what Node says of it', async () => {
    const began = process.cpuUsage();
    while (process.cpuUsage(began).user < 20_000) block(1);
    const found = await scrape();
    const cpu = found.value('process_cpu_seconds_total') ?? 0;
    const after = process.cpuUsage();
    assert.ok(cpu >= 0.01 && cpu <= (after.user + after.system) / 1e6);
    const started = found.value('process_start_time_seconds') ?? 0;
    assert.ok(Math.abs(Date.now() / 1000 - process.uptime() - started) < 1, `${started}`);
    const used = found.value('nodejs_heap_size_used_bytes') ?? 0;
    const total = found.value('nodejs_heap_size_total_bytes') ?? 0;
    const resident = found.value('process_resident_memory_bytes') ?? 0;
    assert.ok(used > 1e6 && used < total && total < resident);
    assert.ok((found.value('nodejs_external_memory_bytes') ?? 0) > 0);
    // One process has one version: where other tests came first, theirs.
    const [[versions = '', one] = []] = Object.entries(found.table('signed_data_proxy_build_info'));
    assert.deepEqual([versions.split(' ')[1], one], [process.version, 1]);
  });

  it('counts garbage collections', async () => {
    await eventually(async () => {
      collectGarbage();
      return ((await scrape()).table('nodejs_gc_duration_seconds_count').major ?? 0) > 0;
    });
  });

  it('counts how long the event loop was blocked, whoever asks and how often', async () => {
    const blocked = (found: Scrape) => found.value('nodejs_eventloop_blocked_seconds_total') ?? Number.NaN;
    await sleep(60);
    const before = blocked(await scrape());
    block(300);
    await sleep(60);
    const first = await scrape();
    assert.ok(blocked(first) - before >= 0.25, `${blocked(first)}`);
    const second = await scrape();
    assert.ok(blocked(second) >= blocked(first));
  });

  it('begins once', () => assert.equal(processMetrics('1.2.3'), processMetrics('1.2.3')));
});
