import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Milliseconds that one program may take. */
const PROGRAM_TIMEOUT_MS = 240_000;

/** The environment without variables of npm, Node.js and the service, which a user need not have. TLS authorities stay. */
export const env: Record<string, string | undefined> = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_|INIT_CWD$|NODE_(?!EXTRA_CA_CERTS$)|SERVICE_|LOG_)/i.test(name),
  ),
);

export function fail(message: string): never {
  throw new Error(message);
}

/** Runs a program to its end and returns its output. @throws Error with the output when the program fails. */
export function run(cwd: string, program: string, ...args: string[]): string {
  const options = { cwd, env, encoding: 'utf8', timeout: PROGRAM_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout, stderr, error } = spawnSync(program, args, options);
  if (status === 0) return stdout;
  return fail(`${program} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}\n${stdout}${stderr}`);
}

/** Returns files that run the tests of the given ones, in so many processes. */
export const grouped = (count: number, files: readonly string[]) =>
  run(root, process.execPath, 'test/support/groups.mjs', `${count}`, ...files).match(/.+/g) ?? [];
