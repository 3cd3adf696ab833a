import { delimiter, dirname } from 'node:path';
import { env, fail, root, run } from './package/run.ts';

/** Versions of Node.js that `engines` admits, other than the one that runs this. npm has packages of the real programs. */
const VERSIONS: Readonly<Record<string, string>> = { 22: '22.23.3', 24: '24.21.0' };

/** Returns environment variables with which `node` is that version, in a process and in those that it starts. */
export function withNode(major: number | string): Record<string, string | undefined> {
  const version = VERSIONS[major] ?? fail(`name one of ${Object.keys(VERSIONS).join(', ')}, not ${major}`);
  const source = `--package=node-${process.platform}-${process.arch}@${version}`;
  const program = run(root, 'npx', '--yes', '--ignore-scripts', source, '--', 'node', '-p', 'process.execPath');
  return { ...env, PATH: `${dirname(program)}${delimiter}${env.PATH}` };
}
