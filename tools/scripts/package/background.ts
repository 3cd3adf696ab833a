import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { env, fail } from './run.ts';

/** Milliseconds: processors may be busy with tests. */
const START_TIMEOUT_MS = 120_000;

/** A program that goes on in the background, and what it has said. */
export class Background {
  readonly child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  #said = '';

  constructor(cwd: string, variables: Readonly<Record<string, string>>, program: string, ...args: string[]) {
    this.child = spawn(program, args, { cwd, env: { ...env, ...variables }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#ended = once(this.child, 'close');
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#said += text;
      });
    }
  }

  /** The first group of what it says sooner or later. */
  async find(pattern: RegExp): Promise<string> {
    const end = Date.now() + START_TIMEOUT_MS;
    while (Date.now() < end && this.child.exitCode === null) {
      const found = pattern.exec(this.#said)?.[1];
      if (found !== undefined) return found;
      await sleep(20);
    }
    return fail(`the program did not say ${pattern}:\n${this.#said}`);
  }

  /** Sends SIGTERM, and takes nothing but exit code 0 and a last line that says so. */
  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    const [code] = await this.#ended;
    if (code !== 0) fail(`the service ended with exit code ${code}:\n${this.#said}`);
    if (!/INFO stopped\s*$/.test(this.#said)) fail(`the service has not stopped by itself:\n${this.#said}`);
  }
}
