import { type ChildProcess, spawn } from 'node:child_process';
import type { LookupAddress } from 'node:dns';
import { withTimeout } from '../../time/with-timeout.ts';

const LOOKUP_TIMEOUT_MS = 15_000;
const IDLE_MS = 10_000;

const PROGRAM = `
const { lookup } = require('node:dns');
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('message', (host) => lookup(host, { all: true }, (_, addresses = []) => process.send({ host, addresses })));
`;

/** The variables that system resolvers look at, and no others: the environment may hold secrets. */
const VARIABLES = ['LOCALDOMAIN', 'RES_OPTIONS', 'HOSTALIASES', 'SystemRoot'];

/**
 * Asks the system's own resolver (getaddrinfo), which knows sources besides DNS, such as multicast DNS and directories. It
 * blocks a thread for as long as it takes, nothing can stop it, and node does not end before it has: so it has a process
 * of its own, with threads of its own, which is there only while it is asked.
 */
export class SystemResolver {
  readonly #waiting = new Map<string, (addresses: readonly LookupAddress[]) => void>();
  #child: ChildProcess | undefined;
  #idle: NodeJS.Timeout | undefined;
  readonly #idleMs: number;

  /** @param idleMs how long the process stays without a question. */
  constructor(idleMs = IDLE_MS) {
    this.#idleMs = idleMs;
  }

  /**
   * The addresses of a name that is not being asked for already; none when the system does not know it.
   * @throws when there is no process to ask.
   */
  async find(host: string): Promise<readonly LookupAddress[]> {
    clearTimeout(this.#idle);
    this.#child ??= this.#start();
    const child = this.#child;
    const answer = new Promise<readonly LookupAddress[]>((resolve) => this.#waiting.set(host, resolve));
    try {
      // Throws for a process that could not be started: without file descriptors it has no channel.
      child.send(host, (error) => {
        if (error) this.#end(child);
      });
      return await withTimeout(LOOKUP_TIMEOUT_MS, answer, () => []);
    } catch (error) {
      this.#end(child);
      throw error;
    } finally {
      this.#waiting.delete(host);
      if (this.#waiting.size === 0) this.#idle = setTimeout(() => this.close(), this.#idleMs).unref();
    }
  }

  close(): void {
    if (this.#child !== undefined) this.#end(this.#child);
  }

  #start(): ChildProcess {
    const env = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
    const child = spawn(process.execPath, ['-e', PROGRAM], {
      // libuv lets look-ups have half of them.
      env: { ...env, UV_THREADPOOL_SIZE: '128' },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      windowsHide: true,
    });
    child.on('message', ({ host, addresses }: { host: string; addresses: readonly LookupAddress[] }) =>
      this.#waiting.get(host)?.(addresses),
    );
    child.on('error', () => this.#end(child));
    child.on('exit', () => this.#end(child));
    // Whoever waits has reasons of its own to stay.
    child.unref();
    child.channel?.unref();
    return child;
  }

  /** Nobody gets an answer from it any more. */
  #end(child: ChildProcess): void {
    // A child that could not be started has no number: node would end a stranger, or its whole own group.
    if (child.pid !== undefined) child.kill('SIGKILL');
    if (this.#child !== child) return;
    this.#child = undefined;
    clearTimeout(this.#idle);
    for (const answer of this.#waiting.values()) answer([]);
  }
}
