import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { startProgram } from '../state/redis-server.ts';

/** Why tests that run nginx are skipped; false where they are not. */
export const withoutNginx = spawnSync('nginx', ['-v']).status === 0 ? false : 'nginx is not installed';

/** nginx with a whole config, whose own files in `/tmp` are in a folder of the test. It ends with the test. */
export async function startNginx(t: TestContext, config: string): Promise<void> {
  const folder = await folderWith(t);
  const file = join(folder, 'nginx.conf');
  await writeFile(file, config.replaceAll(/ \/tmp\/(?!sdp-)/g, ` ${folder}/`));
  const checked = spawnSync('nginx', ['-t', '-c', file], { encoding: 'utf8' });
  assert.match(checked.stderr, /test is successful/);
  startProgram(t, 'nginx', ['-c', file, '-g', 'daemon off;']);
}
