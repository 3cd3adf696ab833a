import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { print, root } from './load.ts';

/** The release that changes are compared with, as kept in `release.json`. */
export interface Release {
  readonly commit: string;
  readonly date: string;
  /** CPU of the floor for a request by that of the release, for each kind of request. */
  readonly figures: Readonly<Record<string, number>>;
}

export const RELEASE_FILE = join(root, 'tools/bench/release.json');

export function readRelease(): Release {
  return JSON.parse(readFileSync(RELEASE_FILE, 'utf8'));
}

const git = (...words: string[]) => execFileSync('git', ['-C', root, ...words], { maxBuffer: 2 ** 30 });

/** @throws Error when commits are missing, as in a shallow clone, or files are changed. */
export function presentCommit(): string {
  if (git('status', '--porcelain', '--untracked-files=no').length > 0)
    throw new Error('commit your changes first: what is kept is a commit');
  return git('rev-parse', 'HEAD').toString().trim();
}

/** @throws Error that says how to get the commit. */
function archiveOf(commit: string): Buffer {
  const { status } = spawnSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`]);
  if (status === 0) return git('archive', commit);
  throw new Error(
    `tools/bench/release.json: this clone does not have the commit ${commit}. ` +
      'Get it with `git fetch --unshallow` (a shallow clone) or `git fetch origin <commit>`',
  );
}

/** Without a lock file of its own the commit takes the packages that are here. */
function addPackages(folder: string): void {
  const lock = (of: string) => readFileSync(join(of, 'package-lock.json'), 'utf8');
  if (lock(folder) === lock(root)) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  else execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder, stdio: 'inherit' });
}

/** Builds the release once, into `.cache/bench`. @returns its `dist`. */
export function releaseBuild({ commit }: Release = readRelease()): string {
  const built = join(root, '.cache/bench', commit);
  if (existsSync(built)) return join(built, 'dist');
  print(`building the last release, ${commit}, into .cache/bench`);
  const archive = archiveOf(commit);
  const folder = `${built}.unfinished`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  addPackages(folder);
  execFileSync('npm', ['run', '-s', 'build'], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  renameSync(folder, built);
  return join(built, 'dist');
}
