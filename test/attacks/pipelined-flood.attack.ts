/** The connections of one address that pipeline and read nothing end nobody and hold nobody up. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { transformSync } from 'esbuild';
import { folderWith, launch, PACKAGE_ROOT, PROGRAM } from '../cli/run.ts';
import { configText, KEY } from '../cli/service-config.ts';
import { urlOf } from '../cli/started.ts';
import { floodPipelined } from '../support/pipelined-flood.ts';
import { randomFrom, seed } from '../support/seed.ts';

/** Milliseconds; on a quiet machine it is below 100. */
const LATEST_ANSWER_MS = 1000;
/** MiB, a quarter of the least heap that node has by default. */
const MOST_GROWTH = 512;

it('64 connections of one address that pipeline and read nothing end nobody and hold nobody up', async (t) => {
  const watch = transformSync(readFileSync(join(PACKAGE_ROOT, 'test/support/turn-watch.ts'), 'utf8'), {
    loader: 'ts',
  }).code;
  const config = configText(undefined, '').replace('{ port: 0 }', '{ port: 0, connections: { perAddress: 64 } }');
  const cwd = await folderWith(t, { 'c.yaml': config, 'watch.mjs': watch });
  const args = ['--import', './watch.mjs', PROGRAM, 'start', '-c', 'c.yaml'];
  const running = launch(t, process.execPath, args, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  const url = await urlOf(running);
  const random = randomFrom(seed);
  const flood = await floodPipelined(url, running.child.pid ?? 0, { connections: 64, addresses: 1, random });
  t.diagnostic(JSON.stringify(flood));
  assert.equal(flood.failures, 0);
  assert.ok(flood.slowest < LATEST_ANSWER_MS, `an answer took ${flood.slowest} ms`);
  assert.ok(flood.growth < MOST_GROWTH, `resident memory grew by ${flood.growth} MiB`);
  assert.equal((await running.stop()).code, 0);
});
