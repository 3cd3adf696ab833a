import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Milliseconds that one program may take. */
const PROGRAM_TIMEOUT_MS = 240_000;

/** What the surrounding npm and an operator's shell set is nothing that a user has; whom downloads trust is the machine's. */
export const env: Record<string, string | undefined> = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_|INIT_CWD$|NODE_(?!EXTRA_CA_CERTS$)|SERVICE_|LOG_)/i.test(name),
  ),
);

export function fail(message: string): never {
  throw new Error(message);
}

/** Says why a script ends, without a stack: it is about a program, not about the script. */
export function complain(error: unknown): void {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/** Runs a program to its end; shows what it said only when it fails. */
export function run(cwd: string, program: string, ...args: string[]): string {
  const options = { cwd, env, encoding: 'utf8', timeout: PROGRAM_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout, stderr, error } = spawnSync(program, args, options);
  if (status === 0) return stdout;
  return fail(`${program} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}\n${stdout}${stderr}`);
}

/** As {@link run}, while this process goes on: for a program that asks it something. @returns the output, trimmed. */
export async function runBeside(cwd: string, program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, {
    cwd,
    env,
    encoding: 'utf8',
    timeout: PROGRAM_TIMEOUT_MS,
  });
  return stdout.trim();
}

export async function step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  const begin = performance.now();
  const result = await work();
  console.log(`${((performance.now() - begin) / 1000).toFixed(1).padStart(5)} s  ${name}`);
  return result;
}

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
    const end = Date.now() + 30_000;
    while (Date.now() < end && this.child.exitCode === null) {
      const found = pattern.exec(this.#said)?.[1];
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return fail(`the service did not say ${pattern}:\n${this.#said}`);
  }

  /** Sends SIGTERM, and takes nothing but exit code 0 and a last line that says so. */
  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    const [code] = await this.#ended;
    if (code !== 0) fail(`the service ended with exit code ${code}:\n${this.#said}`);
    if (!/INFO stopped\s*$/.test(this.#said)) fail(`the service has not stopped by itself:\n${this.#said}`);
  }
}
