import { PluginClock } from './clock.ts';
import { Instance, type InstanceOptions, type Owner } from './instance.ts';
import { LONGEST_FRAME } from './protocol.ts';
import { RemoteCall } from './remote-call.ts';
import { Restarts } from './restarts.ts';

export interface IsolateOptions extends InstanceOptions {
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

/** An isolated plugin: one process that is called, and a warm one that takes over. */
export class Isolate implements Owner {
  readonly #options: IsolateOptions;
  readonly #restarts = new Restarts();
  readonly #clock = new PluginClock();
  #active: Instance | undefined;
  #spare: Instance | undefined;
  /** All that run, but for those that were replaced. */
  readonly #present = new Set<Instance>();
  readonly #retired = new Set<Instance>();
  /** In the order of their deadlines. */
  readonly #calls = new Set<RemoteCall>();
  /** Calls for which no process is ready. */
  #waiting: RemoteCall[] = [];
  #deadline: NodeJS.Timeout | undefined;
  #restart: NodeJS.Timeout | undefined;
  /** Doubled with each process that has not answered anything: another one may not do better. */
  #mostSilence = MOST_SILENCE;
  #phase: 'starting' | 'running' | 'stopped' = 'starting';

  constructor(options: IsolateOptions) {
    this.#options = options;
  }

  /** Milliseconds by the clock of what it is charged for. */
  now(): number {
    return this.#clock.now();
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
    await this.#begin().ready;
    await this.#begin().ready;
    this.#phase = 'running';
    this.#replenish();
  }

  /** Ends the processes. */
  async stop(): Promise<void> {
    this.#phase = 'stopped';
    clearTimeout(this.#deadline);
    clearTimeout(this.#restart);
    const all = [...this.#present, ...this.#retired];
    for (const instance of all) instance.kill('the service stops');
    await Promise.all(all.map(({ ended }) => ended));
    for (const call of this.#calls) call.fail(new Error('the service stops'));
  }

  /** Calls a hook. @throws what it throws, and Error when it cannot be called */
  call(hook: string, context: Readonly<Record<string, unknown>>): Promise<unknown> {
    this.#options.count('calls');
    const call = new RemoteCall(hook, context, this.now() + this.#options.budget, () => this.#calls.delete(call));
    if (this.#calls.size >= MOST_CALLS) call.fail(new Error(`${MOST_CALLS} calls are in flight`));
    else if (call.length > LONGEST_FRAME) call.fail(new Error('the call is longer than 4 MiB'));
    else if ((this.#active?.unsent ?? 0) > MOST_UNSENT) call.fail(new Error('too much waits for the process'));
    else this.#accept(call);
    return call.promise;
  }

  stalled(instance: Instance): void {
    if (instance === this.#active && this.#spare !== undefined) this.#takeOver();
  }

  stuck(instance: Instance): void {
    if (instance === this.#active) this.#takeOver();
  }

  silent(instance: Instance): void {
    if (instance !== this.#active || this.#spare === undefined || instance.silence < this.#mostSilence) return;
    this.#mostSilence = instance.hasAnswered ? MOST_SILENCE : this.#mostSilence * 2;
    this.#takeOver();
  }

  returned(calls: readonly RemoteCall[]): void {
    this.#waiting = [...calls, ...this.#waiting];
    this.#dispatch();
  }

  ended(instance: Instance, reason: string): void {
    const wasReplaced = this.#retired.delete(instance);
    const wasReady = instance === this.#active || instance === this.#spare;
    this.#present.delete(instance);
    if (instance === this.#spare) this.#spare = undefined;
    if (instance === this.#active) this.#useSpare();
    if (this.#phase !== 'running') return;
    if (!wasReplaced && !wasReady) this.#restarts.note(false);
    if (!wasReplaced) this.#options.log('error', `its process has ended: ${reason}`);
    this.#dispatch();
    this.#replenish();
  }

  #accept(call: RemoteCall): void {
    this.#calls.add(call);
    this.#watchDeadlines();
    if (this.#active === undefined) this.#waiting.push(call);
    else this.#active.send(call);
  }

  #begin(): Instance {
    const instance = new Instance(this.#options, this);
    this.#present.add(instance);
    instance.ready.then(
      () => this.#isReady(instance),
      () => undefined,
    );
    return instance;
  }

  #isReady(instance: Instance): void {
    if (!this.#present.has(instance)) return;
    this.#restarts.note(true);
    if (this.#phase === 'running') this.#options.log('info', 'another process is ready');
    this.#spare = instance;
    if (this.#active === undefined) this.#useSpare();
    this.#dispatch();
    if (this.#active?.isStalled && this.#spare !== undefined) this.#takeOver();
  }

  /** What has not begun moves to the warm process, or to the next that gets ready; what has begun may end where it is. */
  #takeOver(): void {
    const stuck = this.#active;
    if (stuck === undefined) return;
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
    this.#clock.watch(this.#active?.stats);
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
      this.#begin();
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
        const now = this.now();
        for (const call of this.#calls) {
          if (call.deadline + GRACE_MS > now) break;
          call.fail(new Error(`no answer within ${this.#options.budget} ms`));
          call.forget();
        }
        this.#watchDeadlines();
      },
      Math.max(1, first.deadline + GRACE_MS - this.now()),
    );
    timer.unref();
    this.#deadline = timer;
  }
}
