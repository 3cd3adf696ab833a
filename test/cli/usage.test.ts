/** A wrong command line gets one line that says what would be right. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { launch, PACKAGE_ROOT, PROGRAM, runCli } from './run.ts';

const { version }: { version: string } = JSON.parse(await readFile(join(PACKAGE_ROOT, 'package.json'), 'utf8'));

it('behind npm, which keeps options for itself, the line says how to write them', async (t) => {
  const typed = async (script: string, ...args: string[]) => {
    const npm = { cwd: PACKAGE_ROOT, env: { npm_lifecycle_event: script, INIT_CWD: '/' } };
    return (await runCli(t, args, npm)).stderr;
  };
  const missing = 'error: missing required option -c, --config <file>';
  const kept = 'npm keeps options that stand before --, write';
  assert.equal(await typed('start', 'start'), `${missing}: ${kept} npm start -- -c <file>\n`);
  assert.equal(await typed('cli', 'try', 'a/b'), `${missing}: ${kept} npm run -s cli -- try -c <file>\n`);
});

describe('--help and --version work everywhere', () => {
  const title = `signed-data-proxy/${version}`;

  it('version, of any command and of none', async (t) => {
    for (const args of [['-v'], ['start', '--version'], ['config', '-v'], ['plugin', 'new', 'x', '-v']]) {
      const ended = await runCli(t, args);
      assert.deepEqual([ended.code, ended.stderr], [0, ''], args.join(' '));
      assert.ok(ended.stdout.startsWith(`${title} ${process.platform}`), ended.stdout);
    }
  });

  it('through the installed program', async (t) => {
    const { code, stdout } = await launch(t, PROGRAM, ['--version']).ended;
    assert.deepEqual([code, stdout.split(' ')[0]], [0, title]);
    const wrong = await launch(t, PROGRAM, ['config', 'validate', '-c', '1e3'], { cwd: '/' }).ended;
    assert.deepEqual(wrong, { code: 1, signal: null, stdout: '', stderr: 'error: /1e3: file not found\n' });
  });

  it('through npm', async (t) => {
    const asked = await launch(t, 'npm', ['run', 'cli', '--silent', '--', '--version'], { cwd: PACKAGE_ROOT }).ended;
    assert.deepEqual([asked.code, asked.stdout.split(' ')[0]], [0, title]);
  });
});
