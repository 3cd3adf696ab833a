/** A release is a tag that says what users notice, and a branch adds subjects that a reader of the log can scan. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, PACKAGE_ROOT } from '../cli/run.ts';

const IDENTITY = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com'];
const CHANGELOG = '# Changelog\n\n## 0.2.0\n\n### Operate\n\n- Faster: do nothing.\n\n## 0.1.0\n\nThe first.\n';

/** Runs a program to its end. @returns its exit status and what it printed on either stream. */
function run(cwd: string, program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  try {
    return [0, execFileSync(program, args, { cwd, encoding: 'utf8', stdio: 'pipe', env: { ...process.env, ...env } })];
  } catch (error) {
    const { status, stderr } = error as { status: number; stderr: string };
    return [status, stderr];
  }
}

async function repository(t: TestContext, files: Readonly<Record<string, string>>) {
  const folder = await folderWith(t, files);
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

describe('a release', () => {
  const released = async (t: TestContext, version: string) => {
    const repo = await repository(t, { 'package.json': JSON.stringify({ version }), 'CHANGELOG.md': CHANGELOG });
    const script = join(PACKAGE_ROOT, 'tools/scripts/release.ts');
    const identity = { GIT_COMMITTER_NAME: 'Test', GIT_COMMITTER_EMAIL: 'test@example.com' };
    const tsx = import.meta.resolve('tsx');
    return { ...repo, release: () => run(repo.folder, process.execPath, ['--import', tsx, script], identity) };
  };

  it('tags the commit with the entry of its version, once', async (t) => {
    const { git, release } = await released(t, '0.2.0');
    assert.deepEqual(release(), [0, 'tagged v0.2.0: push it with "git push origin v0.2.0"\n']);
    const message = git('tag', '--list', '--format=%(contents)', 'v0.2.0');
    assert.deepEqual(message, [0, 'v0.2.0\n\n### Operate\n\n- Faster: do nothing.\n\n']);
    assert.deepEqual(release(), [1, 'v0.2.0 is tagged: raise the version in package.json\n']);
  });

  it('needs an entry in the changelog', async (t) => {
    const { git, release } = await released(t, '0.3.0');
    const lacks = 'CHANGELOG.md has no entry "## 0.3.0": write what users notice, and what they do about it\n';
    assert.deepEqual(release(), [1, lacks]);
    assert.deepEqual(git('tag'), [0, '']);
  });

  it('needs a tree without changes', async (t) => {
    const { git, release } = await released(t, '0.1.0');
    git('rm', '--cached', 'CHANGELOG.md');
    assert.deepEqual(release(), [1, 'the working tree has changes: commit them first\n']);
  });
});

describe('subjects of commits', () => {
  const gate = (folder: string, BASE: string) => run(folder, join(PACKAGE_ROOT, '.ci/subjects'), [], { BASE });

  it('have at most 72 characters, a capital first and no full stop', async (t) => {
    const { folder, git, commit } = await repository(t, { file: '' });
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
    const { folder, commit } = await repository(t, { file: '' });
    commit('drop the gate.');
    assert.deepEqual(gate(folder, 'origin/HEAD'), [0, '']);
  });
});
