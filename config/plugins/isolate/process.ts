import { readFileSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { onAbort } from '../../../kernel/charge.ts';
import { readJson } from '../../../lib/json/json-text.ts';
import { isRecord } from '../../../lib/json/value.ts';
import { OwnedProcess } from '../../../lib/process/child-process.ts';
import { clipped } from '../../../lib/text.ts';
import { type Deferred, deferred } from '../../../lib/time.ts';
import type { Memo } from '../../../plugins-sdk/hooks/memo.ts';
import { PluginProblem } from '../plugin-problem.ts';
import { nodeOptions } from './node-options.ts';
import { LONGEST_LINE, logOutput } from './output.ts';
import { LONGEST, LONGEST_TEXT, lineSplitter, REPORTS, type Report, type Task, type Thrown } from './protocol.ts';

export interface ProcessOptions {
  /** The module that the process runs. */
  readonly code: string;
  /** Most resident memory, in MiB. */
  readonly memory: number;
  /** Called with each line that the process writes. */
  readonly line: (text: string) => void;
}

const LOOK_INTERVAL_MS = 50;
/** Most orders whose end was not reported. Calls that never end take memory on both sides. */
const MOST_WAITING = 4096;
/** Most levels of a report. Results and memos have half as many; to parse millions of brackets takes seconds. */
const DEEPEST = 512;

export interface Answer {
  readonly value: unknown;
  readonly memo?: Memo;
}

/** An order that was sent. */
export type Asked = ReturnType<PluginProcess['ask']>;

/** An order whose process has neither answered nor ended. */
interface Waiting {
  hasBegun: boolean;
  readonly begun: Deferred<boolean>;
  readonly answer: Deferred<Answer>;
}

const ignore = () => undefined;

/** A process that runs a plugin. The constructor starts it, and it is never restarted. */
export class PluginProcess {
  /** Resolves with the reason when the process has ended. */
  readonly ended: Promise<string>;
  /** Resident memory, in bytes. */
  resident = 0;
  readonly #own: OwnedProcess;
  readonly #orders: Writable | undefined;
  readonly #waiting = new Map<number, Waiting>();
  /** The waiting orders that were not given up. */
  readonly #awaited = new Set<number>();
  #last = 0;
  /** Number of looks since the last report, while orders are awaited. */
  #silent = 0;
  /** When there are more such looks than this, the process is killed. */
  #mostSilent = Number.POSITIVE_INFINITY;
  #how: string | undefined;

  /** @throws Error when no process can be started */
  constructor({ code, memory, line }: ProcessOptions) {
    // Without a listener, SIGUSR1 opens node's inspector, through which the key can be read over the network.
    if (!process.listeners('SIGUSR1').includes(ignore)) process.on('SIGUSR1', ignore);
    const stdio = Array.from({ length: REPORTS + 1 }, () => 'pipe' as const);
    // The process gets its own group: for the handle of a child that was never spawned, node signals the whole group.
    this.#own = new OwnedProcess(nodeOptions(memory), { env: {}, cwd: '/', stdio, detached: true });
    const { child } = this.#own;
    for (const stream of child.stdio ?? []) stream?.on('error', ignore);
    const [stdin, stdout, stderr, orders, reports] = child.stdio ?? [];
    // A process that has lost a channel to the service is useless.
    for (const way of [orders, reports]) way?.once('close', () => child.kill('SIGKILL'));
    if (orders instanceof Writable) this.#orders = orders;
    if (reports instanceof Readable) this.#read(reports);
    stdin?.end(code);
    const written = [stdout, stderr].filter((stream) => stream instanceof Readable);
    const output = logOutput(written, line);
    const looking = setInterval(() => this.#look(memory), LOOK_INTERVAL_MS).unref();
    this.ended = this.#own.ended.then(async (how) => {
      clearInterval(looking);
      await output;
      return this.#end(/^(it|the) /.test(how) ? how : `it ${how}`);
    });
  }

  /** Bytes sent to the process that it has not read. */
  get unsent(): number {
    return this.#orders?.writableLength ?? 0;
  }

  /** From now on, kills the process if it reports nothing for so long while orders are awaited. */
  watch(milliseconds: number): void {
    this.#mostSilent = milliseconds / LOOK_INTERVAL_MS;
  }

  kill(reason: string): void {
    this.#own.kill(clipped(reason, LONGEST_LINE));
  }

  /** Sends an order and returns the value of its answer. @throws the plugin's own error, and PluginProblem */
  async do(task: Task): Promise<unknown> {
    return (await this.ask(task).answer).value;
  }

  /** Sends an order, and tells of its signal's abort. @throws Error for an order that is too long */
  ask(task: Task, signal?: AbortSignal) {
    this.#last += 1;
    const i = this.#last;
    const line = `${JSON.stringify({ i, ...task })}\n`;
    if (line.length > LONGEST) throw new Error('the call is longer than 4 MiB');
    if (this.#waiting.size === MOST_WAITING) this.kill(`it did not end ${MOST_WAITING} calls`);
    const waiting = { hasBegun: false, begun: deferred<boolean>(), answer: deferred<Answer>() };
    waiting.answer.promise.catch(ignore);
    this.#waiting.set(i, waiting);
    this.#awaited.add(i);
    if (this.#how !== undefined) this.#end(this.#how);
    this.#send(line);
    const ignoreAbort = signal && onAbort(signal, () => this.#send(`${JSON.stringify({ i, do: 'abort' })}\n`));
    return {
      /** Resolves with true when the order has begun, and with false if its process ends before that. */
      begun: waiting.begun.promise,
      /** Rejects with the plugin's own error or PluginProblem. Nobody need await it. */
      answer: waiting.answer.promise,
      /** Ends the wait for the order, which may still end. */
      giveUp: () => {
        ignoreAbort?.();
        // The process may be stuck in this order, and has not been looked at if the budget was short.
        if (this.#awaited.delete(i) && this.#awaited.size === 0) this.ask({ do: 'ping' });
      },
    };
  }

  #send(line: string): void {
    if (this.#orders?.writable) this.#orders.write(line);
  }

  #read(reports: Readable): void {
    const split = lineSplitter();
    reports.setEncoding('utf8').on('data', (text: string) => {
      try {
        for (const line of split(text)) this.#take(readJson(line, DEEPEST));
      } catch (error) {
        this.kill(error instanceof SyntaxError ? 'it sent what is no JSON' : String(Object(error).message));
      }
    });
  }

  /** Takes a report. @throws Error for one that our code never sends: the plugin may have forged it. */
  #take(message: unknown): void {
    const { i, begins, ok: value, memo, threw } = Object(message) as Report;
    const waiting = this.#waiting.get(i);
    if (waiting === undefined || (begins && waiting.hasBegun)) throw new Error('it reported what nobody has asked for');
    this.#silent = 0;
    waiting.hasBegun = true;
    waiting.begun.resolve(true);
    if (begins) return;
    // It may be impossible to make an error of a forged report. That throws here, which ends the process and with it the call.
    const error = threw && rebuilt(Object(threw));
    waiting.answer.resolve(error ? Promise.reject(error) : { value, ...(isRecord(memo) && { memo: memo as Memo }) });
    this.#waiting.delete(i);
    this.#awaited.delete(i);
  }

  /** Kills the process if it takes too much memory, or is silent while orders are awaited. Unless stuck, it answers a ping. */
  #look(most: number): void {
    try {
      const status = readFileSync(`/proc/${this.#own.child.pid}/status`, 'latin1');
      this.resident = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
    } catch {
      // The process has just ended, or this is not Linux.
    }
    const taken = Math.round(this.resident / 1024 / 1024);
    if (taken > most) this.kill(`it took ${taken} MiB of ${most} MiB`);
    this.#silent = this.#awaited.size === 0 ? 0 : this.#silent + 1;
    if (this.#silent > this.#mostSilent) this.kill('it does not answer');
    if (this.#silent === 1) this.ask({ do: 'ping' });
  }

  #end(how: string): string {
    this.#how = how;
    this.resident = 0;
    for (const { begun, answer } of this.#waiting.values()) {
      begun.resolve(false);
      answer.resolve(Promise.reject(new PluginProblem(`its process has ended: ${how}`)));
    }
    this.#waiting.clear();
    this.#awaited.clear();
    return how;
  }
}

function rebuilt({ problem, message, stack, issues }: Thrown): Error {
  const text = clipped(String(message), LONGEST_TEXT);
  if (problem) return new PluginProblem(text);
  const error = Object.assign(new Error(text), { stack: clipped(String(stack), LONGEST_TEXT) });
  return Array.isArray(issues) ? Object.assign(error, { issues }) : error;
}
