import { withTimeout } from '../../../lib/time/with-timeout.ts';
import { notReadyAfter } from '../plugin-problem.ts';
import { type Caller, PluginProcess } from './process.ts';
import { LONGEST_FRAME } from './protocol.ts';
import { RemoteCall } from './remote-call.ts';
import { Restarts } from './restarts.ts';
import type { ProcessOptions } from './spawn.ts';

export interface HostOptions extends ProcessOptions {
  readonly config: unknown;
  /** Milliseconds. */
  readonly budget: number;
  /** Milliseconds that a process has to get ready. */
  readonly patience: number;
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void;
  readonly count: (what: 'calls' | 'restarts' | 'takeovers') => void;
}

const MOST_CALLS = 512;
/** Bytes that may wait for a process that does not read. */
const MOST_UNSENT = 64 * 1024 * 1024;
/** Calls in a row without an answer, after which a process is replaced by the warm one. */
const MOST_SILENCE = 3;
/** Milliseconds from the end of a budget, when a call has been refused, until it is given up. */
const GRACE_MS = 10;

/** An isolated plugin as it serves: one process that is called, and a warm one that takes over. */
export class PluginHost implements Caller {
  readonly #options: HostOptions;
  readonly #restarts = new Restarts();
  #active: PluginProcess | undefined;
  #spare: PluginProcess | undefined;
  /** All that run, but for those that were replaced. */
  readonly #present = new Set<PluginProcess>();
  readonly #retired = new Set<PluginProcess>();
  /** In the order of their deadlines. */
  readonly #calls = new Set<RemoteCall>();
  /** Calls for which no process is ready. */
  #waiting: RemoteCall[] = [];
  #deadline: NodeJS.Timeout | undefined;
  #restart: NodeJS.Timeout | undefined;
  /** Doubled with each process that has not answered anything: another one may not do better. */
  #mostSilence = MOST_SILENCE;
  #phase: 'starting' | 'running' | 'stopped' = 'starting';

  constructor(options: HostOptions) {
    this.#options = options;
  }

  get budget(): number {
    return this.#options.budget;
  }

  /** Whether a process takes calls; while none does, calls wait until their budgets end. */
  get isReady(): boolean {
    return this.#active !== undefined;
  }

  /** Bytes of all its processes. */
  get resident(): number {
    return [...this.#present, ...this.#retired].reduce((sum, { resident }) => sum + resident, 0);
  }

  /** Resolves when both processes are ready. @throws what the plugin threw, and PluginProblem */
  async start(): Promise<void> {
    await this.#prepare(this.#begin());
    await this.#prepare(this.#begin());
    this.#phase = 'running';
    this.#replenish();
  }

  /** Ends the processes. */
  async stop(): Promise<void> {
    this.#phase = 'stopped';
    clearTimeout(this.#deadline);
    clearTimeout(this.#restart);
    const all = [...this.#present, ...this.#retired];
    for (const process of all) process.kill('the service stops');
    await Promise.all(all.map(({ ended }) => ended));
    for (const call of this.#calls) call.fail(new Error('the service stops'));
  }

  /** Calls a hook. @throws what it throws, and Error when it cannot be called */
  call(hook: string, context: Readonly<Record<string, unknown>>): Promise<unknown> {
    this.#options.count('calls');
    const call = new RemoteCall(hook, context, performance.now() + this.budget, () => this.#calls.delete(call));
    if (this.#calls.size >= MOST_CALLS) call.fail(new Error(`${MOST_CALLS} calls are in flight`));
    else if (call.length > LONGEST_FRAME) call.fail(new Error('the call is longer than 4 MiB'));
    else if ((this.#active?.unsent ?? 0) > MOST_UNSENT) call.fail(new Error('too much waits for the process'));
    else this.#accept(call);
    return call.promise;
  }

  suspect(process: PluginProcess): void {
    if (process !== this.#active) return;
    const hasSpare = this.#spare !== undefined;
    // One that is stuck would be stuck for the calls behind it, too: they wait for another one rather than for it.
    const isStuck = process.isStalled && (hasSpare || process.isDoubted);
    const isMute = hasSpare && !process.isStalled && process.silence >= this.#mostSilence;
    if (isMute) this.#mostSilence = process.hasAnswered ? MOST_SILENCE : this.#mostSilence * 2;
    if (isStuck || isMute) this.#takeOver(process);
  }

  returned(calls: readonly RemoteCall[]): void {
    this.#waiting = [...calls, ...this.#waiting];
    this.#dispatch();
  }

  ended(process: PluginProcess, reason: string): void {
    const wasReplaced = this.#retired.delete(process);
    const wasReady = process === this.#active || process === this.#spare;
    this.#present.delete(process);
    if (process === this.#spare) this.#spare = undefined;
    if (process === this.#active) this.#useSpare();
    if (this.#phase !== 'running') return;
    if (!wasReplaced && !wasReady) this.#restarts.note(false);
    if (!wasReplaced) this.#options.log('error', `its process has ended: ${reason}`);
    this.#replenish();
  }

  #accept(call: RemoteCall): void {
    this.#calls.add(call);
    this.#watchDeadlines();
    if (this.#active === undefined) this.#waiting.push(call);
    else this.#active.send(call);
  }

  /** @throws Error when no process can be started */
  #begin(): PluginProcess {
    const process = new PluginProcess(this.#options, this);
    this.#present.add(process);
    return process;
  }

  /** Has a process make the plugin. @throws what the plugin threw, and PluginProblem */
  async #prepare(process: PluginProcess): Promise<void> {
    const { config, patience } = this.#options;
    const made = process.ask({ k: 'load' }, 'loaded').then(() => process.ask({ k: 'make', config }, 'made'));
    await withTimeout(patience, made, notReadyAfter(patience)).catch((error: unknown) => {
      process.kill(String(Object(error).message));
      throw error;
    });
    if (this.#present.has(process)) this.#use(process);
  }

  #use(process: PluginProcess): void {
    this.#restarts.note(true);
    if (this.#phase === 'running') this.#options.log('info', 'another process is ready');
    this.#spare = process;
    if (this.#active === undefined) this.#useSpare();
    else this.suspect(this.#active);
    this.#dispatch();
  }

  /** What has not begun moves to the warm process, or to the next that gets ready; what has begun may end where it is. */
  #takeOver(stuck: PluginProcess): void {
    this.#useSpare();
    this.#present.delete(stuck);
    this.#retired.add(stuck);
    this.#options.count('takeovers');
    this.#options.log('warn', 'its process does not answer: another one takes over');
    this.returned(stuck.retire());
    this.#replenish();
  }

  #useSpare(): void {
    this.#active = this.#spare;
    this.#spare = undefined;
  }

  #dispatch(): void {
    const active = this.#active;
    if (active === undefined) return;
    const calls = this.#waiting;
    this.#waiting = [];
    for (const call of calls) if (!call.isOver) active.send(call);
  }

  /** Has two processes run again. */
  #replenish(): void {
    if (this.#phase !== 'running' || this.#restart !== undefined || this.#present.size >= 2) return;
    this.#restart = setTimeout(() => {
      this.#restart = undefined;
      if (this.#phase === 'running') this.#beginAnew();
    }, this.#restarts.delay());
    this.#restart.unref();
  }

  /** Descriptors and processes may be used up: then it is tried again later. */
  #beginAnew(): void {
    try {
      this.#options.count('restarts');
      // What keeps it from getting ready is the reason of its end.
      this.#prepare(this.#begin()).catch(() => undefined);
    } catch (error) {
      this.#restarts.note(false);
      this.#options.log(
        'error',
        `no process can be started: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    this.#replenish();
  }

  /** Their budgets have ended, of which the guard has told whoever called. */
  #watchDeadlines(): void {
    const [first] = this.#calls;
    if (this.#deadline !== undefined || first === undefined) return;
    const timer = setTimeout(
      () => {
        this.#deadline = undefined;
        const now = performance.now();
        for (const call of this.#calls) {
          if (call.deadline + GRACE_MS > now) break;
          call.fail(new Error(`no answer within ${this.budget} ms`));
          call.forget();
        }
        this.#watchDeadlines();
      },
      Math.max(1, first.deadline + GRACE_MS - performance.now()),
    );
    timer.unref();
    this.#deadline = timer;
  }
}
