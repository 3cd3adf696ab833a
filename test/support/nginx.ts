import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { folderWith, PACKAGE_ROOT } from '../cli/run.ts';
import { freePort, startProgram } from '../state/redis-server.ts';
import type { Lifetime } from './lifetime.ts';

/** Why tests that run nginx are skipped; false where they are not. */
export const withoutNginx = spawnSync('nginx', ['-v']).status === 0 ? false : 'nginx is not installed';

/** nginx with a whole config, whose own files in `/tmp` are in a folder of the test. It ends with the test or the suite. @returns its error log. */
export async function startNginx(lifetime: Lifetime, config: string): Promise<string> {
  const folder = await folderWith(lifetime);
  const file = join(folder, 'nginx.conf');
  const own = config
    .replace('error_log stderr', 'error_log /tmp/error.log')
    .replaceAll(/ \/tmp\/(?!sdp-)/g, ` ${folder}/`);
  await writeFile(file, own);
  const checked = spawnSync('nginx', ['-t', '-c', file], { encoding: 'utf8' });
  assert.match(checked.stderr, /test is successful/);
  startProgram(lifetime, 'nginx', ['-c', file, '-g', 'daemon off;']);
  return join(folder, 'error.log');
}

/** nginx with the config of the example for replicas, in front of these URLs. @param change of it. @returns where it listens, and its error log. */
export async function startProxy(
  lifetime: Lifetime,
  replicas: readonly string[],
  change = (config: string) => config,
): Promise<{ readonly url: string; readonly errorLog: string }> {
  const port = await freePort();
  const to = replicas.map((url) => `server ${url.replace('http://', '')} max_fails=1 fail_timeout=2s;`);
  const text = await readFile(join(PACKAGE_ROOT, 'examples/deploy/nginx.conf'), 'utf8');
  const config = text
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replace(/server signed-data-proxy:3000 resolve (.*);/, to.join(' '));
  return { errorLog: await startNginx(lifetime, change(config)), url: `http://127.0.0.1:${port}` };
}
