import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './package/run.ts';

/** Runs programs that are installed apart, as the lock file of their folder says, and when it has changed. */
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

  /** @returns what the program said; fails as it does. */
  run(program: string, ...args: string[]): string {
    return run(root, this.path(`node_modules/.bin/${program}`), ...args);
  }
}
