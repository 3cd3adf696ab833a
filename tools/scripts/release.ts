import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Tags the checked-out commit as the version in `package.json`, with that version's entry of the changelog as its message:
 * `node --import tsx tools/scripts/release.ts`. Run `.ci/run` and `.ci/nightly` first. Afterwards push the tag, and run
 * `npm publish --provenance` for `dist` and each folder of `dist/packages`.
 */

const git = (...args: readonly string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();

/** Returns the changelog's entry of a version. @throws Error if there is none, or one without text. */
function entryOf(version: string): string {
  const [, ...entries] = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m);
  const entry = entries.find((text) => text.startsWith(`${version}\n`));
  const text = entry?.slice(version.length).trim();
  if (!text)
    throw new Error(`CHANGELOG.md has no entry "## ${version}": write what users notice, and what they do about it`);
  return text;
}

/** Tags the release. @throws Error naming what the release lacks. */
function tag(): string {
  const { version }: { version: string } = JSON.parse(readFileSync('package.json', 'utf8'));
  const name = `v${version}`;
  if (git('status', '--porcelain') !== '') throw new Error('the working tree has changes: commit them first');
  if (git('tag', '--list', name) !== '') throw new Error(`${name} is tagged: raise the version in package.json`);
  git('tag', '--annotate', name, '--cleanup=whitespace', '--message', `${name}\n\n${entryOf(version)}`);
  return name;
}

try {
  const name = tag();
  console.log(`tagged ${name}: push it with "git push origin ${name}"`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
