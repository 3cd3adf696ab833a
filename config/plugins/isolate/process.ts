import { randomBytes } from 'node:crypto';
import type { OwnedProcess } from '../../../lib/process/child-process.ts';
import { clipped } from '../../../lib/text/clipped.ts';
import { PluginProblem } from '../plugin-problem.ts';
import type { Bundle } from './bundle.ts';
import type { Claims } from './claims.ts';
import { OrderWriter } from './orders.ts';
import { ProcessStats } from './process-stats.ts';
import { type CallReport, type Order, type Report, TOKEN_BYTES } from './protocol.ts';
import { type RemoteCall, RemoteError, rebuiltError } from './remote-call.ts';
import { ReportReader } from './reports.ts';
import { type ProcessOptions, spawnPlugin } from './spawn.ts';
import { StallWatch, type Watched } from './stall.ts';

/** Who has calls for a process. */
export interface Caller {
  /** Milliseconds that a call may take. */
  readonly budget: number;
  /** It does not answer, or a budget has ended. */
  suspect(process: PluginProcess): void;
  /** Calls that were sent to it and have not begun: they may begin elsewhere. */
  returned(calls: readonly RemoteCall[]): void;
  ended(process: PluginProcess, reason: string): void;
}

/** Milliseconds between two looks at how much memory a process takes. */
const MEMORY_POLL_INTERVAL_MS = 25;
const MEBIBYTE = 1024 * 1024;
/** Characters of what is said of its end. */
const LONGEST_REASON = 1000;
/** Calls that were never answered: each takes memory for as long as the process lives, and may be answered at any time. */
const MOST_OWED = 8192;

/** A process of an isolated plugin, and the calls that were sent to it. It starts when it is made, and ends once for all. */
export class PluginProcess implements Watched {
  /** Resolves with the reason once everything that it sent was read. */
  readonly ended: Promise<string>;
  readonly stats: ProcessStats | undefined;
  /** Bytes in memory. */
  resident = 0;
  /** Whether it does not answer a ping. */
  isStalled = false;
  /** Whether a budget has ended, and no sign of life has come since. */
  isDoubted = false;
  /** Calls in a row that it has not answered within their budgets. */
  silence = 0;
  /** Whether it has ever answered a call. */
  hasAnswered = false;
  readonly #claims: Claims;
  readonly #own: OwnedProcess;
  readonly #locate: Bundle['locate'];
  readonly #orders: OrderWriter;
  readonly #reader: ReportReader | undefined;
  readonly #memory: NodeJS.Timeout;
  readonly #caller: Caller | undefined;
  readonly #stall: StallWatch | undefined;
  /** By id, in the order of the ids; those that nobody waits for any more, or that have moved, are `null`. */
  readonly #owed = new Map<number, RemoteCall | null>();
  /** Calls that somebody waits for. */
  #live = 0;
  #lastId = 0;
  #frames = 0;
  #reason: string | undefined;
  #isRetired = false;
  #awaitsPong = false;
  /** Takes the answer to the one thing that was asked of it beside calls. */
  #answer: ((report: Report) => void) | undefined;

  /** @param caller is nothing for one that only loads its plugin. @throws Error when no process can be started */
  constructor(options: ProcessOptions, caller?: Caller) {
    const { own, claims, orders, reports } = spawnPlugin(options);
    const { pid } = own.child;
    const token = randomBytes(TOKEN_BYTES);
    const take = (report: Report) => this.#take(report);
    this.#own = own;
    this.#claims = claims;
    this.#caller = caller;
    this.#locate = options.bundle.locate;
    this.stats = pid === undefined ? undefined : new ProcessStats(pid);
    this.#stall = this.stats && caller && new StallWatch(this.stats, caller.budget, this);
    this.#memory = setInterval(() => this.#lookAtMemory(options.memory), MEMORY_POLL_INTERVAL_MS).unref();
    this.#reader = reports && new ReportReader(reports, token, take, (reason) => this.kill(reason));
    this.#orders = new OrderWriter(orders, token);
    this.ended = own.ended.then((how) => this.#end(`it ${how}`));
  }

  /**
   * Asks one thing after the other, to load its module first.
   * @throws what the plugin threw, and PluginProblem when the process ends instead
   */
  async ask<K extends Report['k']>(order: Order, kind: K): Promise<Report & { readonly k: K }> {
    const answer = new Promise<Report>((resolve) => {
      this.#answer = resolve;
    });
    this.#orders.order(order);
    const report = await Promise.race([answer, this.ended]);
    if (typeof report === 'string') throw new PluginProblem(`its process has ended: ${report}`);
    if (report.k === 'failed') throw rebuiltError(report.error, this.#locate);
    if (report.k !== kind)
      throw new PluginProblem(`its process reports "${clipped(report.k, 20)}" instead of "${kind}"`);
    return report as Report & { readonly k: K };
  }

  /** Bytes that it has not taken yet. */
  get unsent(): number {
    return this.#orders.unsent;
  }

  send(call: RemoteCall): void {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#owed.set(id, call);
    call.forget = () => this.#forget(id);
    this.#live += 1;
    if (this.#owed.size > MOST_OWED) this.kill(`it never answered ${MOST_OWED} calls`);
    this.#orders.send(call.frame(id), call.text);
    this.#stall?.begin();
  }

  /** Has no call begin any more; what has begun may end. @returns what has not begun. */
  retire(): RemoteCall[] {
    this.#isRetired = true;
    this.#claims.retire();
    const calls = this.#takeNotBegun();
    this.#endIfDone();
    return calls;
  }

  /** Ends the process, whatever it is doing. @param reason is what is said of it, if it is the first. */
  kill(reason: string): void {
    this.#reason ??= clipped(reason, LONGEST_REASON);
    this.#own.kill();
  }

  get frames(): number {
    // What the service does not read cannot be missed.
    if (this.#reader?.isPaused) this.#frames += 1;
    return this.#frames;
  }

  get isWaitedFor(): boolean {
    return this.#live > 0;
  }

  get owes(): boolean {
    return (this.#live > 0 || this.isDoubted) && !this.#isRetired;
  }

  ping(): void {
    if (!this.#awaitsPong) this.#orders.order({ k: 'ping' });
    this.#awaitsPong = true;
    this.#orders.flush();
  }

  stalled(): void {
    this.isStalled = true;
    this.#caller?.suspect(this);
  }

  #lookAtMemory(most: number): void {
    this.resident = this.stats?.look().resident ?? 0;
    const taken = Math.round(this.resident / MEBIBYTE);
    if (taken > most) this.kill(`it took ${taken} MiB of ${most} MiB`);
    if (this.#claims.isAbused) this.kill('it wrote into what it shares with the service');
  }

  /** @throws Error that says what is wrong with it */
  #take(report: Report): void {
    this.#frames += 1;
    this.isStalled = false;
    this.isDoubted = false;
    if ('i' in report) this.#takeOfCall(report);
    else if (report.k === 'pong') {
      if (!this.#awaitsPong) throw new Error('it answered a ping that was not sent');
      this.#awaitsPong = false;
    } else {
      if (this.#answer === undefined) throw new Error('it reported what nobody has asked for');
      this.#answer(report);
      this.#answer = undefined;
    }
  }

  #takeOfCall(report: CallReport): void {
    const call = this.#owed.get(report.i);
    if (call === undefined) throw new Error('it reported of a call that it does not have');
    if (report.k === 'watch') call?.watch(() => this.#orders.order({ k: 'abort', i: report.i }));
    else this.#settle(report, call);
  }

  /** @param call is nothing where its budget has ended meanwhile. */
  #settle(report: Exclude<CallReport, { readonly k: 'watch' }>, call: RemoteCall | null): void {
    if (report.k === 'skipped' && !this.#isRetired)
      throw new Error('it left a call to another process, and there is none');
    if (report.k !== 'skipped') call?.settle(report, this.#locate);
    if (call !== null) this.#live -= 1;
    this.#owed.delete(report.i);
    this.silence = 0;
    this.hasAnswered = true;
    if (report.k === 'skipped' && call !== null) this.#caller?.returned([call]);
    this.#endIfDone();
  }

  /** Nobody waits for a call any more: its budget has ended. An answer to it may come yet. */
  #forget(id: number): void {
    this.#drop(id);
    this.silence += 1;
    this.isDoubted = true;
    this.#stall?.begin();
    if (!this.#isRetired) this.#caller?.suspect(this);
    this.#endIfDone();
  }

  #drop(id: number): void {
    if (this.#owed.get(id)) this.#live -= 1;
    this.#owed.set(id, null);
  }

  #takeNotBegun(): RemoteCall[] {
    const { begun } = this.#claims;
    return [...this.#owed].flatMap(([id, call]) => {
      if (id <= begun || call === null) return [];
      this.#drop(id);
      return call;
    });
  }

  #endIfDone(): void {
    if (this.#isRetired && this.#live === 0) this.kill('another one has taken over');
  }

  #end(how: string): string {
    const reason = this.#reason ?? how;
    clearInterval(this.#memory);
    this.#stall?.end();
    this.stats?.close();
    this.resident = 0;
    const notBegun = this.#takeNotBegun();
    this.#claims.close();
    for (const call of this.#owed.values())
      call?.fail(new RemoteError(`the process of the plugin has ended: ${reason}`));
    this.#owed.clear();
    this.#live = 0;
    // Another process is to be the active one before calls go to it.
    this.#caller?.ended(this, reason);
    this.#caller?.returned(notBegun);
    return reason;
  }
}
