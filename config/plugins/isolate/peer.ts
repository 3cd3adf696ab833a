import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Duplex } from 'node:stream';
import { OwnedProcess } from '../../../plugins-sdk/lib/process/child-process.ts';
import type { Bundle } from './bundle.ts';
import { Claims } from './claims.ts';
import { clipped } from './clipped.ts';
import { orderFrame } from './frames.ts';
import { nodeOptions } from './node-options.ts';
import { Output } from './output.ts';
import { ProcessStats } from './process-stats.ts';
import { ORDERS, type Order, REPORTS, type Report, TOKEN_BYTES } from './protocol.ts';
import { ReportReader } from './reports.ts';

export interface PeerOptions {
  readonly bundle: Bundle;
  /** MiB. */
  readonly memory: number;
  /** Told of each line that the process writes. */
  readonly line: (text: string) => void;
}

/** Milliseconds between two looks at how much memory a process takes. */
const MEMORY_POLL_INTERVAL_MS = 25;
const MEBIBYTE = 1024 * 1024;
/** Characters of what is said of its end. */
const LONGEST_REASON = 1000;

const ignore = () => undefined;

/** The process of an isolated plugin: started when it is made, ended once, and never heard of again. */
export class Peer {
  readonly claims = new Claims();
  /** Resolves with the reason once everything that it sent was read. */
  readonly ended: Promise<string>;
  readonly stats: ProcessStats | undefined;
  readonly locate: Bundle['locate'];
  readonly #own: OwnedProcess;
  readonly #child: ChildProcess;
  readonly #reader: ReportReader | undefined;
  readonly #memory: NodeJS.Timeout;
  #resident = 0;
  #reason: string | undefined;
  #isOver = false;
  #waiting: Buffer[] = [];
  /** Bytes that the process has not taken yet. */
  #unsent = 0;

  /** @param take gets what the process reports, and throws what is wrong with it. @throws Error when no process can be started */
  constructor({ bundle, memory, line }: PeerOptions, take: (report: Report) => void) {
    // Without a listener, that signal opens node's inspector, through which the network reaches the key.
    if (!process.listeners('SIGUSR1').includes(ignore)) process.on('SIGUSR1', ignore);
    this.locate = bundle.locate;
    this.#own = this.#start(memory);
    this.#child = this.#own.child;
    const { pid } = this.#child;
    this.stats = pid === undefined ? undefined : new ProcessStats(pid);
    this.#memory = setInterval(() => this.#lookAtMemory(memory), MEMORY_POLL_INTERVAL_MS);
    this.#memory.unref();
    this.ended = this.#own.ended.then((how) => this.#end(how));
    // A process that has lost the way to the service is of no use.
    this.#child.once('spawn', () => this.#stream(REPORTS)?.once('end', () => this.#child.kill('SIGKILL')));
    const output = new Output((text) => line(bundle.locate(text)));
    for (const stream of [this.#child.stdout, this.#child.stderr]) if (stream) output.read(stream);
    this.#child.once('exit', () => output.finish());
    const token = randomBytes(TOKEN_BYTES);
    const reports = this.#stream(REPORTS);
    this.#reader = reports && new ReportReader(reports, token, take, (reason) => this.kill(reason));
    for (const stream of this.#child.stdio ?? []) stream?.on('error', () => undefined);
    this.#child.stdin?.end(bundle.code);
    this.#stream(ORDERS)?.write(token);
    this.order({ k: 'load' });
  }

  /** Bytes in memory. */
  get resident(): number {
    return this.#resident;
  }

  /** Whether what it reports waits for the service. */
  get isUnread(): boolean {
    return this.#reader?.isPaused ?? false;
  }

  get unsent(): number {
    return this.#unsent + (this.#stream(ORDERS)?.writableLength ?? 0);
  }

  order(order: Order): void {
    this.send(JSON.stringify(order));
  }

  /** Frames of one turn of the event loop go together. */
  send(json: string, text?: string): void {
    const frame = orderFrame(json, text);
    this.#unsent += frame.length;
    if (this.#waiting.push(frame) === 1) setImmediate(() => this.flush());
  }

  flush(): void {
    const frames = this.#waiting;
    this.#waiting = [];
    this.#unsent = 0;
    if (!this.#isOver && frames.length > 0) this.#stream(ORDERS)?.write(Buffer.concat(frames));
  }

  /** Ends the process, whatever it is doing. @param reason is what is said of it, if it is the first. */
  kill(reason: string): void {
    this.#reason ??= clipped(reason, LONGEST_REASON);
    this.#own.kill();
  }

  #start(memory: number): OwnedProcess {
    try {
      const stdio = ['pipe', 'pipe', 'pipe', 'pipe', 'pipe', this.claims.fd] as const;
      // In a group of its own: node signals the whole group for a handle of a child that was never spawned.
      return new OwnedProcess(nodeOptions(memory), { env: {}, cwd: '/', stdio: [...stdio], detached: true });
    } catch (error) {
      this.claims.close();
      throw error;
    }
  }

  #stream(fd: number): Duplex | undefined {
    // Where the service has no descriptor left, there are no streams.
    const stream: unknown = this.#child.stdio?.[fd];
    return stream instanceof Duplex ? stream : undefined;
  }

  #lookAtMemory(most: number): void {
    this.#resident = this.stats?.look().resident ?? 0;
    const taken = Math.round(this.#resident / MEBIBYTE);
    if (taken > most) this.kill(`it took ${taken} MiB of ${most} MiB`);
    if (this.claims.isAbused) this.kill('it wrote into what it shares with the service');
  }

  #end(how: string): string {
    this.#isOver = true;
    clearInterval(this.#memory);
    this.#resident = 0;
    this.stats?.close();
    this.claims.close();
    return this.#reason ?? `it ${how}`;
  }
}
