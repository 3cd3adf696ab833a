import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';

/** @returns whether the lock of an open file is had. @throws Error that says what to install, or what flock says. */
async function take(path: string, name: string, descriptor: number): Promise<boolean> {
  // The lock belongs to the open file, which the program shares with this process, and stays when it ends.
  const flock = spawn('flock', ['-xn', '3'], { stdio: ['ignore', 'ignore', 'pipe', descriptor] });
  let stderr = '';
  flock.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [status]: unknown[] = await once(flock, 'close').catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? 'is not installed: install util-linux' : error.message;
    throw new Error(`settings.state: the program flock, which keeps other processes out of ${path}, ${why}`);
  });
  if (status === 0) return true;
  if (status === 1 && stderr === '') return false;
  throw new Error(`settings.state: ${name} cannot be locked: ${stderr.trim() || `flock ended with ${status}`}`);
}

/**
 * Keeps other processes from using the file, until the handle that it returns is closed. The kernel does that for a process that was
 * killed, which is why a mere file with a process id in it would not do.
 * @throws Error that says who has the file, or what to install.
 */
export async function lock(path: string): Promise<FileHandle> {
  const name = `${path}.lock`;
  const file = await open(name, 'a+', 0o600);
  try {
    if (await take(path, name, file.fd)) {
      await file.truncate();
      await file.write(`${process.pid}\n`);
      return file;
    }
    const pid = (await file.readFile('utf8')).trim();
    const who = pid === `${process.pid}` ? 'already' : 'by another process';
    throw new Error(`settings.state: ${path} is in use ${who} (pid ${pid})`);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Keeps those out, too, who find no lock file since somebody has removed it.
 * @param descriptor of the file itself, or of what takes its place.
 */
export async function lockFile(path: string, descriptor: number): Promise<void> {
  if (await take(path, path, descriptor)) return;
  throw inUse(path);
}

export function inUse(path: string): Error {
  return new Error(`settings.state: ${path} is in use by another process, whose ${path}.lock was removed`);
}
