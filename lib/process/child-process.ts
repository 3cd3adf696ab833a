import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, fstatSync, openSync, readdirSync, writeFile } from 'node:fs';

const WITH_PARENT = ['--pdeathsig', 'KILL', '--'];

let setpriv: string | null | undefined;

/** Finds `setpriv`, which makes the kernel kill a child when its parent ends: a busy child would not notice that itself. */
function endsWithParent(): string | null {
  const works = (path: string) => spawnSync(path, [...WITH_PARENT, 'true']).status === 0;
  if (setpriv === undefined) setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find(works) ?? null;
  return setpriv;
}

/** The processes that are running. */
const running = new Set<OwnedProcess>();

function killAll(): void {
  for (const one of running) one.kill('was killed with the service');
}

interface OwnedOptions extends SpawnOptions {
  stdio: ('pipe' | 'ignore' | 'ipc')[];
}

/** What is open as this module is loaded, whether node opened it or what started this process did. */
const early: ReadonlySet<number> = new Set(existsSync('/dev/fd') ? readdirSync('/dev/fd').map(Number) : []);

/**
 * Returns the channels of a child, with nothing in place of what else this process has open: libraries let children inherit
 * files, such as LMDB that of `settings.state`, and a shell may leave a service pipes and sockets. Node's permissions cover neither.
 */
function channels(stdio: OwnedOptions['stdio'], nothing: number) {
  const others = new Set(readdirSync('/dev/fd').map(Number).filter(mayBeInherited));
  const length = Math.max(stdio.length, ...[...others].map((fd) => fd + 1));
  return Array.from({ length }, (_, fd) => stdio[fd] ?? (others.has(fd) ? nothing : 'ignore'));
}

/** There may be thousands of later sockets, which are node's own: no child inherits them. */
function mayBeInherited(fd: number): boolean {
  try {
    return !fstatSync(fd).isSocket() || early.has(fd);
  } catch {
    // The listing's own descriptor is closed by now.
    return false;
  }
}

/** A child process of Node.js: the constructor starts it, it is never restarted, and it does not outlive this process. */
export class OwnedProcess {
  /** The child, for its streams and messages. Do not disconnect it: {@link ended} would not resolve. */
  readonly child: ChildProcess;
  /** Resolves once the child has ended and all that it sent was read. The reason ends a sentence: `was ended by SIGABRT`. */
  readonly ended: Promise<string>;
  #reason: string | undefined;

  /** @param args flags of node, then the script to run and its arguments. */
  constructor(args: readonly string[], { stdio, ...options }: OwnedOptions) {
    const wrapper = endsWithParent();
    const [file, all] =
      wrapper === null ? [process.execPath, args] : [wrapper, [...WITH_PARENT, process.execPath, ...args]];
    const nothing = openSync('/dev/null', 'r');
    try {
      this.child = spawn(file, all, { windowsHide: true, ...options, stdio: channels(stdio, nothing) });
    } finally {
      closeSync(nothing);
    }
    if (running.size === 0) process.once('exit', killAll);
    running.add(this);
    // If the machine runs out of memory, the kernel is to kill the child and not the service.
    if (this.child.pid !== undefined) writeFile(`/proc/${this.child.pid}/oom_score_adj`, '1000', () => undefined);
    this.ended = this.#end();
  }

  /** Kills the child, whatever it is doing. @param reason the text for {@link ended}; the first one counts. */
  kill(reason = 'was killed'): void {
    this.#reason ??= reason;
    // A child that could not be started has no process ID: node would send the signal to another process.
    if (this.child.pid !== undefined) this.child.kill('SIGKILL');
  }

  async #end(): Promise<string> {
    const how = await new Promise<string>((resolve) => {
      this.child.on('error', ({ message }) => {
        if (this.child.pid === undefined) resolve(`cannot be started: ${message}`);
      });
      this.child.once('close', (code, signal) =>
        resolve(signal === null ? `ended with code ${code}` : `was ended by ${signal}`),
      );
    });
    running.delete(this);
    if (running.size === 0) process.off('exit', killAll);
    return this.#reason ?? how;
  }
}
