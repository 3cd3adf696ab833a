import { readFileSync } from 'node:fs';
import { Duplex } from 'node:stream';
import { isRecord } from '../../../lib/json/value.ts';
import { OwnedProcess } from '../../../lib/process/child-process.ts';
import { clipped } from '../../../lib/text/clipped.ts';
import { PluginProblem } from '../plugin-problem.ts';
import { nodeOptions } from './node-options.ts';
import { LONGEST_LINE, readOutput } from './output.ts';
import {
  LONGEST,
  LONGEST_TEXT,
  lineSplitter,
  NO_JSON,
  ORDERS,
  type Order,
  REPORTS,
  type Report,
  type Thrown,
} from './protocol.ts';

export interface ProcessOptions {
  /** What it runs. */
  readonly code: string;
  /** MiB. */
  readonly memory: number;
  /** Told of each line that the process writes. */
  readonly line: (text: string) => void;
}

const LOOK_INTERVAL_MS = 50;
/** What its own code reports of one call at most: that it begins, that it watches, and how it ends. */
const MOST_REPORTS = 3;

/** Who asks for a call. */
export interface Listener {
  /** The signal whose abort the hook wants to hear of. */
  signal(): unknown;
  begins(): void;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
  readonly listener: Listener | undefined;
  hasBegun: boolean;
  isWatched: boolean;
}

export interface Answer {
  readonly value: unknown;
  readonly memo?: object;
}

/** An order that was given. */
export interface Asked {
  /** @throws what the plugin threw, and PluginProblem */
  readonly answer: Promise<Answer>;
  /** Its answer comes too late. */
  forget(): void;
}

/** A call that had not begun when its process ended. */
export class NotBegun extends PluginProblem {}

/** An order before it has a number. */
export type Unnumbered = Order extends infer O ? (O extends Order ? Omit<O, 'i'> : never) : never;

const ignore = () => undefined;

/** A process that has a plugin. It starts when it is made, and ends once for all. */
export class PluginProcess {
  /** Resolves with the reason. */
  readonly ended: Promise<string>;
  /** Bytes in memory. */
  resident = 0;
  /** When its last report came. */
  heardAt = performance.now();
  readonly #own: OwnedProcess;
  readonly #orders: Duplex | undefined;
  readonly #waiting = new Map<number, Waiting>();
  readonly #look: NodeJS.Timeout;
  #last = 0;
  /** Reports of forgotten calls that may yet come. */
  #strays = 0;
  #how: string | undefined;

  /** @throws Error when no process can be started */
  constructor({ code, memory, line }: ProcessOptions) {
    // Without a listener, that signal opens node's inspector, through which the network reaches the key.
    if (!process.listeners('SIGUSR1').includes(ignore)) process.on('SIGUSR1', ignore);
    // In a group of its own: node signals the whole group for a handle of a child that was never spawned.
    const options = {
      env: {},
      cwd: '/',
      stdio: Array.from({ length: REPORTS + 1 }, () => 'pipe' as const),
      detached: true,
    };
    this.#own = new OwnedProcess(nodeOptions(memory), options);
    const { child } = this.#own;
    for (const stream of child.stdio ?? []) stream?.on('error', ignore);
    const rest = readOutput(
      [child.stdout, child.stderr].filter((stream) => stream !== null),
      line,
    );
    child.once('exit', rest);
    const [orders, reports] = [ORDERS, REPORTS].map((at): unknown => child.stdio?.[at]);
    this.#orders = orders instanceof Duplex ? orders : undefined;
    // A process that has lost the way to the service is of no use.
    this.#orders?.once('close', () => child.kill('SIGKILL'));
    if (reports instanceof Duplex) this.#read(reports.once('end', () => child.kill('SIGKILL')));
    child.stdin?.end(code);
    this.#look = setInterval(() => this.#lookAtMemory(memory), LOOK_INTERVAL_MS).unref();
    this.ended = this.#own.ended.then((how) => this.#end(/^(it|the) /.test(how) ? how : `it ${how}`));
  }

  get hasEnded(): boolean {
    return this.#how !== undefined;
  }

  get unsent(): number {
    return this.#orders?.writableLength ?? 0;
  }

  kill(reason: string): void {
    this.#own.kill(clipped(reason, LONGEST_LINE));
  }

  /** @throws what the plugin threw, and PluginProblem */
  async ask(order: Unnumbered): Promise<unknown> {
    return (await this.call(order).answer).value;
  }

  /** @throws Error for an order that is too long */
  call(order: Unnumbered, listener?: Listener): Asked {
    this.#last += 1;
    const i = this.#last;
    const line = `${JSON.stringify({ i, ...order })}\n`;
    if (line.length > LONGEST) throw new Error('the call is longer than 4 MiB');
    const answer = new Promise<Answer>((resolve, reject) => {
      if (this.#how !== undefined) reject(new NotBegun(`its process has ended: ${this.#how}`));
      else this.#waiting.set(i, { resolve, reject, listener, hasBegun: false, isWatched: false });
    });
    if (this.#orders?.writable) this.#orders.write(line);
    const forget = () => {
      if (this.#waiting.delete(i)) this.#strays += MOST_REPORTS;
    };
    return { answer, forget };
  }

  #read(reports: Duplex): void {
    const split = lineSplitter();
    reports.setEncoding('utf8').on('data', (text: string) => {
      try {
        for (const line of split(text)) this.#take(JSON.parse(line));
      } catch (error) {
        this.kill(error instanceof SyntaxError ? NO_JSON : String(Object(error).message));
      }
    });
  }

  /** @throws Error for what its own code never sends: its plugin can have sent anything else. */
  #take(message: unknown): void {
    const report = Object(message) as Report;
    this.heardAt = performance.now();
    const waiting = this.#waiting.get(report.i);
    if (waiting === undefined) this.#strays -= 1;
    const isOdd =
      waiting === undefined
        ? this.#strays < 0
        : ('begins' in report && waiting.hasBegun) || ('watches' in report && waiting.isWatched);
    if (isOdd) throw new Error('it reported what nobody has asked for');
    if (waiting === undefined) return;
    if ('watches' in report) this.#watch(report.i, waiting);
    else if ('begins' in report) this.#begins(waiting);
    else this.#ends(report, waiting);
  }

  #begins(waiting: Waiting): void {
    if (!waiting.hasBegun) waiting.listener?.begins();
    waiting.hasBegun = true;
  }

  #ends(report: Exclude<Report, { readonly begins: true } | { readonly watches: true }>, waiting: Waiting): void {
    this.#begins(waiting);
    // A plugin may have written what no error can be made of: that ends the process, and with it the call.
    const error = 'threw' in report ? rebuilt(report.threw) : undefined;
    this.#waiting.delete(report.i);
    if ('threw' in report) waiting.reject(error);
    else waiting.resolve({ value: report.ok, ...(isRecord(report.memo) && { memo: report.memo }) });
  }

  #watch(i: number, waiting: Waiting): void {
    waiting.isWatched = true;
    const signal = waiting.listener?.signal();
    const tell = () => this.#orders?.writable && this.#orders.write(`${JSON.stringify({ i, do: 'abort' })}\n`);
    if (signal instanceof AbortSignal) signal.aborted ? tell() : signal.addEventListener('abort', tell, { once: true });
  }

  #lookAtMemory(most: number): void {
    try {
      const status = readFileSync(`/proc/${this.#own.child.pid}/status`, 'latin1');
      this.resident = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
    } catch {
      // It has ended just now, or this is no Linux.
    }
    const taken = Math.round(this.resident / 1024 / 1024);
    if (taken > most) this.kill(`it took ${taken} MiB of ${most} MiB`);
  }

  #end(how: string): string {
    clearInterval(this.#look);
    this.#how = how;
    this.resident = 0;
    for (const { reject, hasBegun } of this.#waiting.values())
      reject(new (hasBegun ? PluginProblem : NotBegun)(`its process has ended: ${how}`));
    this.#waiting.clear();
    return how;
  }
}

function rebuilt(threw: unknown): Error {
  const { problem, message, stack, issues } = Object(threw) as Thrown;
  if (problem) return new PluginProblem(clipped(String(message), LONGEST_TEXT));
  const error = new Error(clipped(String(message), LONGEST_TEXT));
  error.stack = clipped(String(stack), LONGEST_TEXT);
  return Array.isArray(issues) ? Object.assign(error, { issues }) : error;
}
