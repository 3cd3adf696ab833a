/** `test:again` runs the files that failed, and no others. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const folder = mkdtempSync(join(tmpdir(), 'sdp-failed-'));
after(() => rmSync(folder, { recursive: true }));

const reporter = fileURLToPath(new URL('../support/failed.mjs', import.meta.url));
const noted = join(folder, '.cache/tests/failed');
mkdirSync(join(folder, '.cache/tests'), { recursive: true });

/** What `npm run test:again` would run, after a run of this text: also where the run is ended as soon as its tests are. */
function failed(text: string): string {
  const file = join(folder, 'group.mjs');
  writeFileSync(file, `import { describe, it } from 'node:test';\n${text}`);
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  rmSync(noted, { force: true });
  const args = ['--test', '--test-force-exit', `--test-reporter=${reporter}`, file];
  assert.equal(spawnSync(process.execPath, args, { encoding: 'utf8', env, cwd: folder }).stdout, '');
  return existsSync(noted) ? readFileSync(noted, 'utf8') : '';
}

const suite = (name: string, body: string) =>
  `describe('test/${name}.test.ts', () => { it('a', () => { ${body} }); });\n`;

it('names each file that has a failing test, once', () => {
  const bad = 'throw new Error();';
  assert.equal(failed(suite('good', '') + suite('bad', `${bad} }); it('b', () => { ${bad}`)), 'test/bad.test.ts\n');
});

it('names the file of a group that ended before its tests', () => {
  assert.equal(failed('process.exit(1);'), `${join(folder, 'group.mjs')}\n`);
});

it('names nothing where nothing fails', () => {
  assert.equal(failed(suite('good', '')), '');
});
