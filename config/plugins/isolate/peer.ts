import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Duplex } from 'node:stream';
import { OwnedProcess } from '../../../plugins-sdk/child-process.ts';
import { Claims } from './claims.ts';
import { orderFrame, ReportReader } from './frames.ts';
import { nodeOptions } from './node-options.ts';
import { Output } from './output.ts';
import { ORDERS, type Order, REPORTS, type Report, TOKEN_BYTES } from './protocol.ts';

export interface PeerOptions {
  /** What {@link bundlePlugin} made. */
  readonly bundle: string;
  /** MiB. */
  readonly memory: number;
  /** Told of each line that the process writes. */
  readonly line: (text: string) => void;
}

const ignore = () => undefined;

/** The process of an isolated plugin: started when it is made, ended once, and never heard of again. */
export class Peer {
  readonly claims = new Claims();
  /** Resolves with the reason once everything that it sent was read. */
  readonly ended: Promise<string>;
  readonly #own: OwnedProcess;
  readonly #child: ChildProcess;
  readonly #token = randomBytes(TOKEN_BYTES);
  #reason: string | undefined;
  #isOver = false;
  /** Whether it has sent what its own code never sends: what comes later can be no better. */
  #isForged = false;
  #waiting: Buffer[] = [];
  /** Bytes that the process has not taken yet. */
  #unsent = 0;

  /** @param take gets what the process reports. @throws Error when no process can be started */
  constructor({ bundle, memory, line }: PeerOptions, take: (report: Report) => void) {
    // Without a listener, that signal opens node's inspector, through which the network reaches the key.
    if (!process.listeners('SIGUSR1').includes(ignore)) process.on('SIGUSR1', ignore);
    this.#own = this.#start(memory);
    this.#child = this.#own.child;
    this.ended = this.#own.ended.then((how) => this.#end(how));
    // A process that has lost the way to the service is of no use.
    this.#child.once('spawn', () => this.#stream(REPORTS)?.once('end', () => this.#child.kill('SIGKILL')));
    const output = new Output(line);
    for (const stream of [this.#child.stdout, this.#child.stderr]) if (stream) output.read(stream);
    this.#child.once('exit', () => output.finish());
    const reader = new ReportReader(this.#token);
    this.#stream(REPORTS)?.on('data', (chunk: Buffer) => {
      if (!this.#isForged) this.#read(reader, chunk, take);
    });
    for (const stream of this.#child.stdio ?? []) stream?.on('error', () => undefined);
    this.#child.stdin?.end(bundle);
    this.order({ k: 'load', token: this.#token.toString('hex') });
  }

  get pid(): number | undefined {
    return this.#child.pid;
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
    this.#reason ??= reason;
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

  #read(reader: ReportReader, chunk: Buffer, take: (report: Report) => void): void {
    try {
      reader.read(chunk, take);
    } catch (error) {
      this.#isForged = true;
      this.kill(error instanceof SyntaxError ? 'it sent a frame that is no JSON' : String(Object(error).message));
    }
  }

  #end(how: string): string {
    this.#isOver = true;
    this.claims.close();
    return this.#reason ?? `it ${how}`;
  }
}
