/** A branch adds subjects that a reader of the log can scan. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, PACKAGE_ROOT } from '../cli/run.ts';

const IDENTITY = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com'];

/** Runs a program to its end. @returns its exit status and what it printed on either stream. */
function run(cwd: string, program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  try {
    return [0, execFileSync(program, args, { cwd, encoding: 'utf8', stdio: 'pipe', env: { ...process.env, ...env } })];
  } catch (error) {
    const { status, stderr } = error as { status: number; stderr: string };
    return [status, stderr];
  }
}

async function repository(t: TestContext) {
  const folder = await folderWith(t, { file: '' });
  const git = (...args: readonly string[]) => run(folder, 'git', [...IDENTITY, ...args]);
  const commit = (subject: string) => git('commit', '--allow-empty', '--message', subject);
  for (const args of [
    ['init', '--quiet', '--initial-branch=main'],
    ['add', '.'],
  ])
    git(...args);
  commit('Begin');
  return { folder, git, commit };
}

describe('subjects of commits', () => {
  const gate = (folder: string, BASE: string) => run(folder, join(PACKAGE_ROOT, '.ci/subjects'), [], { BASE });

  it('have at most 72 characters, a capital first and no full stop', async (t) => {
    const { folder, git, commit } = await repository(t);
    git('branch', 'base');
    commit(`Drop ${'x'.repeat(67)}`);
    assert.deepEqual(gate(folder, 'base'), [0, '']);
    const bad = [`Drop ${'y'.repeat(68)}`, 'drop the gate', 'Drop the gate.'];
    for (const subject of bad) commit(subject);
    const told = 'subject of more than 72 characters, or not "Drop the turn gate":';
    assert.deepEqual(gate(folder, 'base'), [1, `${[told, ...bad.toReversed()].join('\n')}\n`]);
    assert.deepEqual(gate(folder, 'HEAD~3'), [1, `${[told, ...bad.toReversed()].join('\n')}\n`]);
    assert.deepEqual(gate(folder, 'HEAD'), [0, '']);
  });

  it('are not looked at where there is nothing to compare with', async (t) => {
    const { folder, commit } = await repository(t);
    commit('drop the gate.');
    assert.deepEqual(gate(folder, 'origin/HEAD'), [0, '']);
  });
});
