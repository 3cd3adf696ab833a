import { replaceMemo } from '../../../plugins-sdk/hooks/context.ts';
import { unpackMemo, unpackResult } from './odd-values.ts';
import { Peer, type PeerOptions } from './peer.ts';
import type { ProcessStats } from './process-stats.ts';
import type { CallReport, Report } from './protocol.ts';
import { type RemoteCall, RemoteError } from './remote-call.ts';
import { StallWatch } from './stall.ts';
import { ready } from './talk.ts';

export interface InstanceOptions extends PeerOptions {
  readonly config: unknown;
  /** Milliseconds. */
  readonly budget: number;
  /** Milliseconds that it has to get ready. */
  readonly patience: number;
}

export interface Owner {
  /** It does not answer. */
  stalled(instance: Instance): void;
  /** It still does not, and a budget has ended. */
  stuck(instance: Instance): void;
  /** It gives signs of life, and has not answered any of its last calls. */
  silent(instance: Instance): void;
  /** Calls that were sent to it and have not begun: they may begin elsewhere. */
  returned(calls: readonly RemoteCall[]): void;
  ended(instance: Instance, reason: string): void;
}

/** Calls that were never answered: each takes memory for as long as the process lives, and may be answered at any time. */
const MOST_OWED = 8192;

/** A process of an isolated plugin, and the calls that were sent to it. */
export class Instance {
  readonly #peer: Peer;
  readonly #owner: Owner;
  readonly #stall: StallWatch | undefined;
  /** By id, in the order of the ids; those that nobody waits for any more, or that have moved, are `null`. */
  readonly #owed = new Map<number, RemoteCall | null>();
  /** Calls that somebody waits for. */
  #live = 0;
  #lastId = 0;
  #frames = 0;
  #isRetired = false;
  #isStalled = false;
  #awaitsPong = false;
  /** Whether a budget has ended, and no sign of life has come since. */
  #isDoubted = false;
  /** Calls in a row that it has not answered within their budgets. */
  #silence = 0;
  #hasAnswered = false;
  /** Resolves once it takes calls. */
  readonly ready: Promise<void>;
  readonly ended: Promise<string>;

  constructor(options: InstanceOptions, owner: Owner) {
    this.#owner = owner;
    let first: (report: Report) => void = () => undefined;
    this.#peer = new Peer(options, (report) => {
      this.#frames += 1;
      this.#isStalled = false;
      this.#isDoubted = false;
      if (report.k === 'pong') this.#takePong();
      else if ('i' in report) this.#take(report);
      else first(report);
    });
    const { stats } = this.#peer;
    this.#stall = stats && new StallWatch(stats, options.budget, this.#watched());
    this.ready = ready(this.#peer, options, (take) => {
      first = take;
    });
    this.ready.catch((error: unknown) => this.kill(String(Object(error).message)));
    this.ended = this.#peer.ended.then((reason) => this.#end(reason));
  }

  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Bytes. */
  get resident(): number {
    return this.#peer.resident;
  }

  get stats(): ProcessStats | undefined {
    return this.#peer.stats;
  }

  /** Calls in a row that it has not answered within their budgets. */
  get silence(): number {
    return this.#silence;
  }

  /** Whether it has ever answered a call. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Bytes that it has not taken yet. */
  get unsent(): number {
    return this.#peer.unsent;
  }

  send(call: RemoteCall): void {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#owed.set(id, call);
    call.forget = () => this.#forget(id);
    this.#live += 1;
    if (this.#owed.size > MOST_OWED) this.kill(`it never answered ${MOST_OWED} calls`);
    this.#peer.send(call.frame(id), call.text);
    this.#stall?.begin();
  }

  /** Nobody waits for a call any more: its budget has ended. */
  #forget(id: number): void {
    this.#drop(id);
    this.#silence += 1;
    this.#isDoubted = true;
    this.#stall?.begin();
    // One that is stuck would be stuck for the calls behind it, too.
    if (this.#isStalled && !this.#isRetired) this.#owner.stuck(this);
    else if (!this.#isRetired) this.#owner.silent(this);
    this.#endIfDone();
  }

  /** Has no call begin any more; what has begun may end. @returns what has not begun. */
  retire(): RemoteCall[] {
    this.#isRetired = true;
    this.#peer.claims.retire();
    const calls = this.#takeNotBegun();
    this.#endIfDone();
    return calls;
  }

  kill(reason: string): void {
    this.#peer.kill(reason);
  }

  #watched() {
    return {
      frames: () => {
        // What the service does not read cannot be missed.
        if (this.#peer.isUnread) this.#frames += 1;
        return this.#frames;
      },
      isWaitedFor: () => this.#live > 0,
      owes: () => (this.#live > 0 || this.#isDoubted) && !this.#isRetired,
      ping: () => {
        if (!this.#awaitsPong) this.#peer.order({ k: 'ping' });
        this.#awaitsPong = true;
        this.#peer.flush();
      },
      stalled: () => {
        this.#isStalled = true;
        this.#owner.stalled(this);
      },
    };
  }

  #takeNotBegun(): RemoteCall[] {
    const { begun } = this.#peer.claims;
    const calls: RemoteCall[] = [];
    for (const [id, call] of this.#owed) {
      if (id <= begun || call === null) continue;
      calls.push(call);
      this.#drop(id);
    }
    return calls;
  }

  /** An answer to it may come yet, but matters no more. */
  #drop(id: number): void {
    if (this.#owed.get(id)) this.#live -= 1;
    this.#owed.set(id, null);
  }

  #takePong(): void {
    if (!this.#awaitsPong) throw new Error('it answered a ping that was not sent');
    this.#awaitsPong = false;
  }

  /** @throws Error that says what is wrong with it */
  #take(report: CallReport): void {
    const call = this.#owed.get(report.i);
    if (call === undefined) throw new Error('it reported of a call that it does not have');
    if (report.k === 'watch') this.#watchSignal(report.i, call);
    else this.#settle(report, call);
  }

  #settle(report: Exclude<CallReport, { readonly k: 'watch' }>, call: RemoteCall | null): void {
    if (report.k === 'skipped' && !this.#isRetired)
      throw new Error('it left a call to another process, and there is none');
    const result = report.k === 'done' && call !== null ? unpackResult(report) : undefined;
    if (report.k === 'done' && report.m !== undefined && call !== null) replaceMemo(call.context, unpackMemo(report.m));
    this.#drop(report.i);
    this.#owed.delete(report.i);
    this.#silence = 0;
    this.#hasAnswered = true;
    if (call !== null) {
      if (report.k === 'skipped') this.#owner.returned([call]);
      else if (report.k === 'done') call.answer(result);
      else call.fail(report.text === undefined ? undefined : new RemoteError(report.text, this.#peer.locate));
    }
    this.#endIfDone();
  }

  /** @param call is nothing where its budget has ended meanwhile. */
  #watchSignal(id: number, call: RemoteCall | null): void {
    if (call === null) return;
    if (call.isWatched) throw new Error('it asked twice for the signal of a call');
    call.isWatched = true;
    const { signal } = call.context;
    if (!(signal instanceof AbortSignal)) return;
    const tell = () => this.#peer.order({ k: 'abort', i: id });
    if (signal.aborted) tell();
    else signal.addEventListener('abort', tell, { once: true });
  }

  #endIfDone(): void {
    if (this.#isRetired && this.#live === 0) this.kill('another one has taken over');
  }

  #end(reason: string): string {
    this.#stall?.end();
    const returned = this.#takeNotBegun();
    const lost = [...this.#owed.values()].flatMap((call) => call ?? []);
    this.#owed.clear();
    this.#live = 0;
    for (const call of lost) call.fail(new RemoteError(`the process of the plugin has ended: ${reason}`));
    // Another process is to be the active one before calls go to it.
    this.#owner.ended(this, reason);
    this.#owner.returned(returned);
    return reason;
  }
}
