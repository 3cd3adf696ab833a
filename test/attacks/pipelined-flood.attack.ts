/** Thousands of connections that pipeline and read nothing end nobody and hold nobody up. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { transformSync } from 'esbuild';
import { floodPipelined } from '../../tools/bench/pipelined-flood.ts';
import { folderWith, launch, PACKAGE_ROOT } from '../cli/run.ts';
import { configText, KEY } from '../cli/service-config.ts';
import { urlOf } from '../cli/started.ts';
import { randomFrom, seed } from '../support/seed.ts';

/** Milliseconds of CPU; on a quiet machine the longest turn is below 50, and others are answered within a second. */
const LONGEST_TURN = 200;
const LATEST_ANSWER = 10_000;
/** MiB. */
const MOST_GROWTH = 100;

for (const [who, config] of [
  ['eight addresses', configText()],
  // The connections of a proxy are those of one address.
  ['one address', configText(undefined, '').replace('{ port: 0 }', '{ port: 0, rateLimit: { trustForwardedFor: 1 } }')],
] as const) {
  it(`4,096 connections of ${who} that pipeline and read nothing end nobody and hold nobody up`, async (t) => {
    const watch = transformSync(readFileSync(join(PACKAGE_ROOT, 'tools/bench/turn-watch.ts'), 'utf8'), {
      loader: 'ts',
    }).code;
    const cwd = await folderWith(t, { 'c.yaml': config, 'watch.mjs': watch });
    const heap = ['--max-old-space-size=256', '--import', './watch.mjs'];
    const args = [...heap, join(PACKAGE_ROOT, 'cli/bin.js'), 'start', '-c', 'c.yaml'];
    const running = launch(t, process.execPath, args, { cwd, env: { SERVICE_PRIVATE_KEY: KEY, NODE_V8_COVERAGE: '' } });
    const url = await urlOf(running);
    let printed = '';
    running.child.stderr?.on('data', (text: string) => {
      printed += text;
    });
    const addresses = who === 'one address' ? 1 : 8;
    const flood = await floodPipelined(url, running.child.pid ?? 0, {
      connections: 4096,
      addresses,
      random: randomFrom(seed),
      begin: () => {
        printed = '';
      },
    });
    const longestTurn = Math.max(0, ...[...printed.matchAll(/^turn ([\d.]+)$/gm)].map(([, turn]) => Number(turn)));
    t.diagnostic(JSON.stringify({ ...flood, longestTurn }));
    assert.equal(flood.failures, 0);
    assert.ok(flood.slowest < LATEST_ANSWER, `an answer took ${flood.slowest} ms`);
    assert.ok(flood.growth < MOST_GROWTH, `resident memory grew by ${flood.growth} MiB`);
    assert.ok(longestTurn < LONGEST_TURN, `a turn took ${longestTurn} ms of CPU`);
    running.child.kill('SIGTERM');
    assert.equal((await running.ended).code, 0);
  });
}
