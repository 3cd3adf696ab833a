import { spawnSync } from 'node:child_process';
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * Keeps other processes from using the file, until the descriptor that it returns is closed: the kernel does that for a
 * process that was killed, which is why a mere file with a process id in it would not do.
 * @throws Error that says who has the file, or what to install.
 */
export function lock(path: string): number {
  const lockPath = `${path}.lock`;
  const descriptor = openSync(lockPath, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    take(path, descriptor);
    ftruncateSync(descriptor);
    writeSync(descriptor, `${process.pid}\n`, 0);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function take(path: string, descriptor: number): void {
  // The lock belongs to the open file, which the program shares with this process, and stays when it ends.
  const stdio = ['ignore', 'ignore', 'pipe', descriptor] as const;
  const { error, status, stderr } = spawnSync('flock', ['-xn', '3'], { stdio: [...stdio], encoding: 'utf8' });
  if (error !== undefined) {
    const why = 'code' in error && error.code === 'ENOENT' ? 'is not installed: install util-linux' : error.message;
    throw new Error(`settings.state: the program flock, which keeps other processes out of ${path}, ${why}`);
  }
  if (status === 0) return;
  if (status !== 1 || stderr !== '')
    throw new Error(`settings.state: ${path}.lock cannot be locked: ${stderr.trim() || `flock ended with ${status}`}`);
  const pid = readFileSync(`${path}.lock`, 'utf8').trim();
  const who = pid === `${process.pid}` ? 'already' : 'by another process';
  throw new Error(`settings.state: ${path} is in use ${who} (pid ${pid})`);
}
