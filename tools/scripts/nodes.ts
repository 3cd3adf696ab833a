import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { env, root, run } from './package/run.ts';

/** Versions of Node.js that `engines` admits, other than the one that runs this. npm has packages of the real programs. */
export const NODES = { 22: '22.23.3', 24: '24.21.0' } as const;

export type Major = keyof typeof NODES;

/** Returns the folder of a version's program `node`. Downloads it on first use. */
function folderOf(major: Major): string {
  const version = NODES[major];
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const name = `node-${platform}-${process.arch}`;
  const folder = join(root, '.cache', 'nodes', version);
  const bin = join(folder, 'node_modules', name, 'bin');
  if (existsSync(bin)) return bin;
  const quietly = ['--prefer-offline', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  run(root, 'npm', 'install', '--prefix', folder, ...quietly, `${name}@${version}`);
  return bin;
}

/** Returns environment variables with which `node` is that version, in a process and in those that it starts. */
export function withNode(major: Major): Record<string, string | undefined> {
  return { ...env, PATH: `${folderOf(major)}${delimiter}${env.PATH}` };
}
