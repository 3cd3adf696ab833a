import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './package/run.ts';

/** Runs programs from a folder with its own lock file. Installs them first if they are missing or the lock file has changed. */
export class Linter {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = join(root, folder);
    const installed = this.path('node_modules/.package-lock.json');
    const changed = statSync(this.path('package-lock.json')).mtimeMs;
    if (existsSync(installed) && statSync(installed).mtimeMs > changed) return;
    run(this.#folder, 'npm', 'ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund');
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  /** Runs a program and returns its output. @throws Error when the program fails. */
  run(program: string, ...args: string[]): string {
    return run(root, this.path(`node_modules/.bin/${program}`), ...args);
  }
}
