import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** MiB that node itself takes, and the least that a plugin gets beside it. */
const OWN = 48;
const LEAST_HEAP = 12;

/** The options of node for the process of a plugin that may take `memory` MiB. */
export function nodeOptions(memory: number, version = process.versions.node): string[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const heap = Math.max(LEAST_HEAP, Math.floor((memory - OWN) * 0.8));
  const young = Math.min(16, Math.max(1, Math.floor(memory / 32)));
  return [
    major < 22 ? '--experimental-permission' : '--permission',
    // The module is read from stdin: it needs no file.
    ...(major >= 25 ? ['--allow-net'] : []),
    // It writes files in spite of the permissions.
    ...(major > 22 || (major === 22 && minor >= 5) ? ['--no-experimental-sqlite'] : []),
    '--disable-warning=ExperimentalWarning',
    // Traces are written in spite of the permissions.
    '--trace-event-file-pattern=/dev/null',
    `--max-old-space-size=${heap}`,
    `--max-semi-space-size=${young}`,
    '--input-type=module',
    '-',
  ];
}

const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'];
const WITH_PARENT = ['--pdeathsig', 'KILL', '--'];

let setpriv: string | null | undefined;

/** A program that has the kernel end another with its parent, where there is one. */
function endsWithParent(): string | null {
  const works = (path: string) => existsSync(path) && spawnSync(path, [...WITH_PARENT, 'true']).status === 0;
  if (setpriv === undefined) setpriv = SETPRIV.find(works) ?? null;
  return setpriv;
}

/** @returns the program to run, and its arguments. */
export function command(memory: number): readonly [file: string, args: readonly string[]] {
  const options = nodeOptions(memory);
  const wrapper = endsWithParent();
  return wrapper === null ? [process.execPath, options] : [wrapper, [...WITH_PARENT, process.execPath, ...options]];
}
