import { existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { loadEnvironment } from '../config/environment.ts';
import { useProxyVariables } from '../lib/http/client/proxies.ts';
import type { Finding } from '../plugins-sdk/define.ts';
import { type Environment, SECRET_VARIABLES } from '../plugins-sdk/signing/variables.ts';

const require = createRequire(import.meta.url);
const packageRoot = () => dirname(require.resolve('../package.json'));

/** Returns the version in the package's manifest, which is read once: an update may replace the file of a running service. */
export function packageVersion(): string {
  const { version }: { version: string } = require('../package.json');
  return version;
}

/**
 * Returns the directory for relative paths on the command line.
 *
 * For the package's own scripts, which npm runs in the package root, that is `INIT_CWD`, the user's directory. Other
 * processes below npm inherit that variable, and must ignore it.
 */
export function userDirectory(env: Environment = process.env, cwd: string = process.cwd()): string {
  return (ownScript(env, cwd) && env.INIT_CWD) || cwd;
}

function ownScript({ npm_lifecycle_event: script }: Environment, cwd: string): 'start' | 'cli' | undefined {
  return (script === 'start' || script === 'cli') && cwd === packageRoot() ? script : undefined;
}

/** Returns a command as a user types it. npm takes options for itself unless they come after `--`. */
export function asTyped(command: string, env: Environment = process.env, cwd: string = process.cwd()): string {
  const script = ownScript(env, cwd);
  if (script === undefined) return command;
  return script === 'start' ? command.replace(/^start/, 'npm start --') : `npm run -s cli -- ${command}`;
}

/** Returns the absolute path for a path that a user typed. */
export function userPath(path: string): string {
  return resolve(userDirectory(), path);
}

/** Returns the absolute path of the variables file: the one given, or `.env` in the user's directory. */
export function environmentFile(envFile: string | undefined): string {
  return userPath(envFile ?? '.env');
}

/**
 * Returns a warning when others than its owner can read the variables file, which may hold the key. Windows has no such
 * modes, and a pipe is read once.
 */
export function openFileWarning(envFile: string | undefined): string | undefined {
  const file = environmentFile(envFile);
  const about = statSync(file, { throwIfNoEntry: false });
  if (process.platform === 'win32' || about?.isFile() !== true || (about.mode & 0o077) === 0) return undefined;
  // Kubernetes mounts a secret with an `fsGroup` like this: the group is that of the pod.
  if ((about.mode & 0o777) === 0o440) return undefined;
  return `${file} can be read by others (mode ${(about.mode & 0o777).toString(8)}): chmod 600 it`;
}

/** Returns where a missing key was sought: after a start in the wrong directory, the right file is unread. */
export function whereKeyWasSought(envFile: string | undefined): string {
  const file = environmentFile(envFile);
  if (existsSync(file)) return `${file} was read, and the environment wins over it`;
  return `there is no ${file}: start where it is, or name one with --env`;
}

/**
 * Reads the environment, and beneath it the variables of the file given or of `.env` in the user's directory.
 * It removes signing secrets from `process.env`, which every plugin can read, and makes HTTP clients use the proxies named.
 * @param warn called for lines that may not mean what their writer meant.
 * @throws Error when the file given cannot be read.
 */
export async function readEnvironment(
  envFile: string | undefined,
  warn?: (finding: Finding) => void,
): Promise<Environment> {
  const env = await loadEnvironment(environmentFile(envFile), envFile === undefined, process.env, warn);
  for (const name of SECRET_VARIABLES) delete process.env[name];
  useProxyVariables(env);
  return env;
}
