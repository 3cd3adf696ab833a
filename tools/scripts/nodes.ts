import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { env, root, run } from './package/run.ts';

/** Other versions of Node.js than the one that runs this, which `engines` admits; as npm has them, real programs. */
export const NODES = { 22: '22.23.3', 24: '24.21.0' } as const;

export type Major = keyof typeof NODES;

export function isMajor(text: string | undefined): text is `${Major}` {
  return text !== undefined && Object.hasOwn(NODES, text);
}

/** The folder of the program `node` of a version, which is downloaded when it is first asked for. */
function folderOf(major: Major): string {
  const version = NODES[major];
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const name = `node-${platform}-${process.arch}`;
  const folder = join(root, '.cache', 'nodes', version);
  const bin = join(folder, 'node_modules', name, 'bin');
  if (existsSync(bin)) return bin;
  mkdirSync(folder, { recursive: true });
  const quietly = ['--prefer-offline', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  run(folder, 'npm', 'install', '--prefix', folder, ...quietly, `${name}@${version}`);
  return bin;
}

/** Variables of a process for which `node` is that version, and so it is for the processes that it starts. */
export function withNode(major: Major): Record<string, string | undefined> {
  return { ...env, PATH: `${folderOf(major)}${delimiter}${env.PATH}` };
}
