import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs';

const WITH_PARENT = ['--pdeathsig', 'KILL', '--'];

let setpriv: string | null | undefined;

/** A program that has the kernel end another with its parent, where there is one: a busy process notices nothing itself. */
function endsWithParent(): string | null {
  const works = (path: string) => spawnSync(path, [...WITH_PARENT, 'true']).status === 0;
  if (setpriv === undefined) setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find(works) ?? null;
  return setpriv;
}

/** Those that run now. */
const running = new Set<OwnedProcess>();

function killAll(): void {
  for (const one of running) one.kill('was killed with the service');
}

/** A process of node that is this one's own: started when it is made, ended once, and gone when this one is gone. */
export class OwnedProcess {
  /** For its streams and messages. Whoever disconnects it will not hear of its end. */
  readonly child: ChildProcess;
  /** Resolves once it has ended and all that it sent was read; the reason is the rest of a sentence: `was ended by SIGABRT`. */
  readonly ended: Promise<string>;
  #reason: string | undefined;

  /** @param args flags of node and what it is to run. */
  constructor(args: readonly string[], options: SpawnOptions) {
    const wrapper = endsWithParent();
    const [file, all] =
      wrapper === null ? [process.execPath, args] : [wrapper, [...WITH_PARENT, process.execPath, ...args]];
    this.child = spawn(file, all, { windowsHide: true, ...options });
    if (running.size === 0) process.once('exit', killAll);
    running.add(this);
    // Where memory is short, it has to go, and not the service.
    if (this.child.pid !== undefined) writeFile(`/proc/${this.child.pid}/oom_score_adj`, '1000', () => undefined);
    this.ended = this.#end();
  }

  /** Ends it, whatever it is doing. @param reason is what is said of it, if it is the first. */
  kill(reason = 'was killed'): void {
    this.#reason ??= reason;
    // A child that could not be started has no number: node would send the signal to a stranger.
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
