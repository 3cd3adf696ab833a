import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../cli/run.ts';

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

const read = (name: string) => readFileSync(join(PACKAGE_ROOT, 'examples/deploy', name), 'utf8');

/** Instructions of the Dockerfile in order, continued lines joined, without comments. */
export const instructions: readonly Instruction[] = read('Dockerfile')
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    return { name, rest };
  });

export const all = (name: string) =>
  instructions.filter((instruction) => instruction.name === name).map(({ rest }) => rest);

export function only(name: string): string {
  const [value, ...more] = all(name);
  assert.ok(value !== undefined && more.length === 0, `${name} once`);
  return value;
}

/** The exec form; the shell form would be no JSON. */
function execForm(text: string): string[] {
  const words: unknown = JSON.parse(text);
  assert.ok(Array.isArray(words) && words.every((word) => typeof word === 'string'));
  return words;
}

export const entryPoint = execForm(only('ENTRYPOINT'));
export const command = execForm(only('CMD'));
export const healthCheck = execForm(only('HEALTHCHECK').replace(/^.*? CMD /, ''));
export const variables: Readonly<Record<string, string>> = Object.fromEntries(
  only('ENV')
    .split(' ')
    .map((word) => word.split(/=(.*)/).slice(0, 2)),
);

/** What a COPY takes: from the context, or from a stage. */
export function copyOf(rest: string): { stage: string | undefined; sources: string[]; target: string } {
  const [, stage, sources = '', target = ''] = /^(?:--from=(\w+) )?(.*) (\S+)$/.exec(rest) ?? [];
  return { stage, sources: sources.split(' '), target };
}

const patterns = read('Dockerfile.dockerignore')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((pattern) => {
    const expression = pattern
      .replaceAll('.', '\\.')
      .replaceAll('**/', '<any>')
      .replaceAll('*', '[^/]*')
      .replaceAll('<any>', '(?:.*/)?');
    return new RegExp(`^${expression}(?:/|$)`);
  });

/** Whether the build leaves a path out; patterns as in a .dockerignore file, without exceptions. */
export function isIgnored(path: string): boolean {
  return patterns.some((pattern) => pattern.test(path));
}
