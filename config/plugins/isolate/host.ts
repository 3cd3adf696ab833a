import { setTimeout as pause } from 'node:timers/promises';
import { deferred } from '../../../lib/time/deferred.ts';
import { LATE, withTimeout } from '../../../lib/time/with-timeout.ts';
import { insideOf } from '../../../plugins-sdk/hooks/context.ts';
import type { Memo } from '../../../plugins-sdk/hooks/memo.ts';
import { responseTextOf } from '../../../plugins-sdk/hooks/public-hooks.ts';
import { notReadyAfter } from '../plugin-problem.ts';
import { NotBegun, PluginProcess, type ProcessOptions } from './process.ts';

export interface HostOptions extends ProcessOptions {
  readonly config: unknown;
  /** Milliseconds. */
  readonly budget: number;
  /** Milliseconds that a process has to get ready. */
  readonly patience: number;
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void;
  readonly count: (what: 'calls' | 'restarts') => void;
}

type Members = Readonly<Record<string, unknown>>;

const MOST_CALLS = 512;
const MOST_UNSENT = 64 * 1024 * 1024;
/** Milliseconds between two looks at a process of which nothing is heard, at least. */
const LOOK_INTERVAL_MS = 10;
/** Milliseconds from the end of a budget until its call is given up: the guard has refused it by then. */
const GRACE_MS = 20;
/** Milliseconds from then on to a sign of life. */
const PING_TIMEOUT_MS = 100;
/** Milliseconds beside two budgets that a call waits until it begins: a process ends and another gets ready meanwhile. */
const LONGEST_START_MS = 5000;
/** Milliseconds from one start to the next, at least. */
const PERIOD_MS = 1000;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 30_000;

/** A call of a hook. */
interface Call {
  readonly hook: string;
  readonly context: Members;
  /** Told of the process in which it begins. */
  begin(one: PluginProcess): void;
  /** Has the process forget it. */
  forget(): void;
  /** Whether nobody waits for it any more. */
  isOver: boolean;
}

/** An isolated plugin as it serves: one process, which is replaced when it ends, or does not answer when a budget has ended. */
export class PluginHost {
  readonly #options: HostOptions;
  #ready: Promise<PluginProcess>;
  /** The one that is ready, or gets ready. */
  #process: PluginProcess | undefined;
  #isReady = false;
  #doubted: PluginProcess | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #calls = 0;
  #isStopped = false;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#ready = handled(Promise.reject(new Error('it has not started')));
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get resident(): number {
    return this.#process?.resident ?? 0;
  }

  /** @throws what the plugin threw, and PluginProblem */
  async start(): Promise<void> {
    this.#ready = handled(this.#begin());
    await this.#ready;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#process?.kill('the service stops');
    await this.#process?.ended;
  }

  /** Calls a hook; where no process is ready, the call waits for one. @throws what it throws, and Error */
  async call(hook: string, context: Members): Promise<unknown> {
    const { budget, count } = this.#options;
    count('calls');
    if (this.#calls >= MOST_CALLS) throw new Error(`${MOST_CALLS} calls are in flight`);
    if ((this.#process?.unsent ?? 0) > MOST_UNSENT) throw new Error('too much waits for the process');
    const { promise: begun, resolve: begin } = deferred<PluginProcess>();
    const call: Call = { hook, context, begin, forget: () => undefined, isOver: false };
    this.#calls += 1;
    try {
      const answer = this.#send(call);
      // It may also end without having begun, by what keeps every process from getting ready.
      const begins = Promise.race([begun, answer.then(() => begun)]);
      // Its time is its own only from then on: before, others are served, or a process gets ready.
      const wait = () => withTimeout(2 * budget + LONGEST_START_MS, begins);
      const one = await (insideOf(context)?.uncharged(wait) ?? wait());
      if (one === LATE) throw new Error('the call did not begin in time');
      const answered = await withTimeout(budget + GRACE_MS, answer);
      if (answered !== LATE) return answered;
      this.#doubt(one);
      throw new Error(`no answer within ${budget} ms`);
    } finally {
      this.#calls -= 1;
      call.isOver = true;
      call.forget();
    }
  }

  /** What has not begun when a process ends goes once to the next one. */
  async #send(call: Call, isAgain = false): Promise<unknown> {
    const one = await this.#ready;
    if (call.isOver) throw new Error('the call was given up');
    const begins = () => {
      clearInterval(late);
      call.begin(one);
    };
    const { answer, forget } = one.call(sent(call), { signal: () => call.context.signal, begins });
    // One that does not come to it is held up by what nobody may have asked for.
    const { budget } = this.#options;
    const look = () => performance.now() - one.heardAt >= budget && this.#doubt(one);
    const late = setInterval(look, Math.max(budget / 4, LOOK_INTERVAL_MS)).unref();
    call.forget = forget;
    try {
      const { value, memo } = await answer;
      if (memo !== undefined) insideOf(call.context)?.replaceMemo(memo as Memo);
      return value;
    } catch (error) {
      if (isAgain || !(error instanceof NotBegun)) throw error;
    } finally {
      clearInterval(late);
    }
    await one.ended;
    return await this.#send(call, true);
  }

  /** One that only waits for something answers; one that is stuck would be stuck for the calls after it, which wait meanwhile. */
  #doubt(one: PluginProcess): void {
    if (one !== this.#process || one === this.#doubted || one.hasEnded) return;
    this.#doubted = one;
    const asked = performance.now();
    // A call that has begun meanwhile has its budget before it.
    const patience = Math.max(PING_TIMEOUT_MS, one.heardAt + this.#options.budget + GRACE_MS - asked);
    const ping = one.ask({ do: 'ping' }).catch(() => LATE);
    const answers = async () => {
      // Calls that were sent before the ping come first, and tell of themselves.
      if ((await withTimeout(patience, ping)) !== LATE || one.heardAt > asked) {
        this.#doubted = undefined;
        return one;
      }
      one.kill('it does not answer');
      await one.ended;
      return await this.#ready;
    };
    this.#ready = handled(answers());
  }

  /** Has a process make the plugin. @throws what the plugin threw, and PluginProblem */
  async #begin(): Promise<PluginProcess> {
    const { config, patience } = this.#options;
    this.#startedAt = performance.now();
    const one = new PluginProcess(this.#options);
    this.#process = one;
    const made = one.ask({ do: 'load' }).then(() => one.ask({ do: 'make', config }));
    await withTimeout(patience, made, notReadyAfter(patience)).catch((error: unknown) => {
      one.kill(String(Object(error).message));
      throw error;
    });
    this.#isReady = true;
    void one.ended.then((reason) => this.#replace(reason));
    return one;
  }

  #replace(reason: string): void {
    this.#isReady = false;
    this.#ready = handled(this.#isStopped ? Promise.reject(new Error('the service stops')) : this.#again(reason));
  }

  /** Later and later while no process gets ready, since that may never change. */
  async #again(reason: string): Promise<PluginProcess> {
    const { log, count } = this.#options;
    log('error', `its process has ended: ${reason}`);
    for (;;) {
      const backoff = this.#failures === 0 ? 0 : FIRST_BACKOFF_MS * 2 ** Math.min(this.#failures - 1, 10);
      const rest = this.#startedAt + PERIOD_MS - performance.now();
      await pause(Math.max(rest, Math.min(backoff, LONGEST_BACKOFF_MS)), undefined, { ref: false });
      if (this.#isStopped) throw new Error('the service stops');
      try {
        count('restarts');
        const one = await this.#begin();
        this.#failures = 0;
        log('info', 'another process is ready');
        return one;
      } catch (error) {
        this.#failures += 1;
        log('error', `no process gets ready: ${Object(error).message}`);
      }
    }
  }
}

/** Those who wait for it hear of its failure; there may be none. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** What of a call is sent: the signal is asked for when somebody wants it, and long answers stay the texts that they are. */
function sent({ hook, context }: Call) {
  const { memo, answer } = insideOf(context) ?? {};
  const text = responseTextOf(Object(context.response));
  const members = Object.entries(context).flatMap(([name, member]): [string, unknown][] => {
    if (name === 'signal') return [];
    if (name === 'response' && text !== undefined) return [[name, { status: Object(member).status }]];
    return [[name, member instanceof Error ? member.message : member]];
  });
  return {
    do: 'call',
    hook,
    context: Object.fromEntries(members),
    ...(text !== undefined && { text }),
    ...(memo !== undefined && { memo: JSON.parse(memo) }),
    ...(answer !== undefined && { answer: JSON.parse(answer) }),
  } as const;
}
