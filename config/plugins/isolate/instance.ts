import { type Call, RemoteError } from './call.ts';
import { unpackResult } from './odd-values.ts';
import { Peer, type PeerOptions } from './peer.ts';
import { ProcessStats } from './process-stats.ts';
import type { CallReport, Report } from './protocol.ts';
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
  /** Calls that were sent to it and have not begun: they may begin elsewhere. */
  returned(calls: readonly Call[]): void;
  ended(instance: Instance, reason: string): void;
}

/** Milliseconds between two looks at how much memory a process takes. */
const MEMORY_LOOK = 25;
const MEBIBYTE = 1024 * 1024;

/** Calls that were never answered: each takes memory for as long as the process lives. */
const MOST_OWED = 65_536;

/** A process of an isolated plugin, and the calls that were sent to it. */
export class Instance {
  readonly #peer: Peer;
  readonly #owner: Owner;
  readonly #options: InstanceOptions;
  readonly #stats: ProcessStats | undefined;
  readonly #stall: StallWatch | undefined;
  readonly #memory: NodeJS.Timeout;
  /** By id, in the order of the ids; those that nobody waits for any more, or that have moved, are `null`. */
  readonly #owed = new Map<number, Call | null>();
  /** Calls that somebody waits for. */
  #live = 0;
  #lastId = 0;
  #frames = 0;
  #isRetired = false;
  #isStalled = false;
  #resident = 0;
  /** Resolves once it takes calls. */
  readonly ready: Promise<void>;
  readonly ended: Promise<string>;

  constructor(options: InstanceOptions, owner: Owner) {
    this.#options = options;
    this.#owner = owner;
    let first: (report: Report) => void = () => undefined;
    this.#peer = new Peer(options, (report) => {
      this.#frames += 1;
      this.#isStalled = false;
      if ('i' in report) this.#take(report);
      else first(report);
    });
    const { pid } = this.#peer;
    this.#stats = pid === undefined ? undefined : new ProcessStats(pid);
    this.#stall = this.#stats && new StallWatch(this.#stats, options.budget, this.#watched());
    this.#memory = setInterval(() => this.#lookAtMemory(), MEMORY_LOOK);
    this.#memory.unref();
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
    return this.#resident;
  }

  /** Bytes that it has not taken yet. */
  get unsent(): number {
    return this.#peer.unsent;
  }

  send(call: Call): void {
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
    // One that is stuck would be stuck for the calls behind it, too.
    if (this.#isStalled && !this.#isRetired) this.#owner.stuck(this);
    this.#endIfDone();
  }

  /** Has no call begin any more; what has begun may end. @returns what has not begun. */
  retire(): Call[] {
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
      frames: () => this.#frames,
      owes: () => this.#live > 0 && !this.#isRetired,
      ping: () => {
        this.#peer.order({ k: 'ping' });
        this.#peer.flush();
      },
      stalled: () => {
        this.#isStalled = true;
        this.#owner.stalled(this);
      },
    };
  }

  #takeNotBegun(): Call[] {
    const { begun } = this.#peer.claims;
    const calls: Call[] = [];
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

  #take(report: CallReport): void {
    const call = this.#owed.get(report.i);
    if (report.k === 'watch') {
      if (call) this.#watchSignal(report.i, call);
    } else if (call === undefined) this.kill('it answered a call that was not made');
    else this.#settle(report, call);
  }

  #settle(report: Exclude<CallReport, { readonly k: 'watch' }>, call: Call | null): void {
    this.#drop(report.i);
    this.#owed.delete(report.i);
    if (call !== null) {
      if (report.k === 'skipped') this.#owner.returned([call]);
      else if (report.k === 'done') call.answer(unpackResult(report));
      else call.fail(report.text === undefined ? undefined : new RemoteError(report.text));
    }
    this.#endIfDone();
  }

  #watchSignal(id: number, { context }: Call): void {
    const { signal } = context;
    if (!(signal instanceof AbortSignal)) return;
    const tell = () => this.#peer.order({ k: 'abort', i: id });
    if (signal.aborted) tell();
    else signal.addEventListener('abort', tell, { once: true });
  }

  #endIfDone(): void {
    if (this.#isRetired && this.#live === 0) this.kill('another one has taken over');
  }

  #lookAtMemory(): void {
    this.#resident = this.#stats?.look().resident ?? 0;
    const { memory } = this.#options;
    const taken = Math.round(this.#resident / MEBIBYTE);
    if (taken > memory) this.kill(`it took ${taken} MiB of ${memory} MiB`);
    if (this.#peer.claims.isAbused) this.kill('it wrote into what it shares with the service');
  }

  #end(reason: string): string {
    clearInterval(this.#memory);
    this.#stall?.end();
    this.#stats?.close();
    this.#resident = 0;
    const returned = this.#takeNotBegun();
    const lost = [...this.#owed.values()].flatMap((call) => call ?? []);
    this.#owed.clear();
    this.#live = 0;
    for (const call of lost) call.fail(new RemoteError(`the process of the plugin has ended: ${reason}`));
    this.#owner.returned(returned);
    this.#owner.ended(this, reason);
    return reason;
  }
}
