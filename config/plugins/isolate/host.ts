import { setTimeout as pause } from 'node:timers/promises';
import { LATE, withTimeout } from '../../../lib/time.ts';
import { insideOf } from '../../../plugins-sdk/hooks/context.ts';
import { responseTextOf } from '../../../plugins-sdk/hooks/public-hooks.ts';
import { loadedInTime } from '../plugin-problem.ts';
import { type Asked, PluginProcess, type ProcessOptions } from './process.ts';

export interface HostOptions extends ProcessOptions {
  readonly config: unknown;
  /** The plugin's budget, in milliseconds. */
  readonly budget: number;
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void;
  readonly count: (what: 'calls' | 'restarts') => void;
}

/** The context that a hook gets. */
export interface HookContext {
  readonly signal?: AbortSignal;
  readonly [member: string]: unknown;
}

interface Call {
  readonly hook: string;
  readonly context: HookContext;
  /** The order to the latest process that got the call. */
  asked?: Asked;
  isOver?: true;
}

const MOST_CALLS = 512;
const MOST_UNSENT = 64 * 1024 * 1024;
/** Milliseconds from the end of a budget until the call is given up. The guard has refused it by then. */
const GRACE_MS = 20;
/** Milliseconds beyond a budget for which a process may report nothing while calls wait for it. */
const LONGEST_SILENCE_MS = 100;
/** Milliseconds beyond two budgets that a call waits to begin: in that time a process can end and another get ready. */
const LONGEST_START_MS = 5000;
/** Least milliseconds from one start to the next; doubled after each start that failed. */
const PERIOD_MS = 1000;
const LONGEST_PERIOD_MS = 30_000;

/** Runs an isolated plugin in one process, and replaces that when it ends. */
export class PluginHost {
  /** Whether a process takes calls. */
  isReady = false;
  readonly #options: HostOptions;
  #ready: Promise<PluginProcess> = handled(Promise.reject(new Error('it has not started')));
  /** The process that is ready or getting ready. */
  #process: PluginProcess | undefined;
  #startedAt = 0;
  #calls = 0;
  #isStopped = false;

  constructor(options: HostOptions) {
    this.#options = options;
  }

  get resident(): number {
    return this.#process?.resident ?? 0;
  }

  /** Starts the first process. @throws the plugin's own error, and PluginProblem */
  async start(): Promise<void> {
    this.#ready = handled(this.#start());
    await this.#ready;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#process?.kill('the service stops');
    await this.#process?.ended;
  }

  /** Calls a hook. Waits for a process if none is ready. @throws the hook's own error, and Error */
  async call(hook: string, context: HookContext): Promise<unknown> {
    const { budget, count } = this.#options;
    count('calls');
    if (this.#calls >= MOST_CALLS) throw new Error(`${MOST_CALLS} calls are in flight`);
    if ((this.#process?.unsent ?? 0) > MOST_UNSENT) throw new Error('too much waits for the process');
    const call: Call = { hook, context };
    const inside = insideOf(context);
    this.#calls += 1;
    try {
      // The budget is charged only once the call has begun. Until then it waits for other calls, or for a process.
      const start = () => withTimeout(2 * budget + LONGEST_START_MS, this.#begin(call));
      const asked = await (inside?.uncharged(start) ?? start());
      if (asked === LATE) throw new Error('the call did not begin');
      const answer = await withTimeout(budget + GRACE_MS, asked.answer);
      if (answer === LATE) throw new Error(`no answer within ${budget} ms`);
      const { value, memo } = answer;
      if (memo !== undefined) inside?.replaceMemo(memo);
      return value;
    } finally {
      this.#calls -= 1;
      call.isOver = true;
      call.asked?.giveUp();
    }
  }

  /** Resolves when a process has begun the call. If it ends first, the next one gets it; its order may end unbegun, too. */
  async #begin(call: Call, isAgain = false): Promise<Asked> {
    const one = await this.#ready;
    if (call.isOver) throw new Error('the call was given up');
    const asked = one.ask(orderOf(call), call.context.signal);
    call.asked = asked;
    if ((await asked.begun) || isAgain) return asked;
    await one.ended;
    return await this.#begin(call, true);
  }

  /** Starts a process and has it make the plugin. @throws the plugin's own error, and PluginProblem */
  async #start(): Promise<PluginProcess> {
    const { config, budget } = this.#options;
    this.#startedAt = performance.now();
    const one = new PluginProcess(this.#options);
    this.#process = one;
    const made = one.do({ do: 'load' }).then(() => one.do({ do: 'make', config }));
    await loadedInTime(made).catch((error: unknown) => {
      one.kill(String(Object(error).message));
      throw error;
    });
    one.watch(budget + LONGEST_SILENCE_MS);
    this.isReady = true;
    void one.ended.then((reason) => {
      this.isReady = false;
      this.#ready = handled(this.#replace(reason));
    });
    return one;
  }

  /** Starts processes until one is ready. The delays grow, since that may never happen. */
  async #replace(reason: string): Promise<PluginProcess> {
    const { log, count } = this.#options;
    if (!this.#isStopped) log('error', `its process has ended: ${reason}`);
    for (let failures = 0; ; failures += 1) {
      const next = this.#startedAt + Math.min(PERIOD_MS * 2 ** failures, LONGEST_PERIOD_MS);
      if (!this.#isStopped) await pause(Math.max(0, next - performance.now()), undefined, { ref: false });
      if (this.#isStopped) throw new Error('the service stops');
      try {
        count('restarts');
        const one = await this.#start();
        log('info', 'another process is ready');
        return one;
      } catch (error) {
        if (!this.#isStopped) log('error', `no process gets ready: ${Object(error).message}`);
      }
    }
  }
}

/** Marks the rejection of a promise as handled, since nobody may await it. Whoever does still gets the error. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Makes the order of a call, with a long answer as text. The signal has a message of its own. */
function orderOf({ hook, context }: Call) {
  const { memo, answer, keys } = insideOf(context) ?? {};
  const members: Record<string, unknown> = { ...context, keys };
  const { response, error } = members;
  const text = responseTextOf(Object(response));
  if (text !== undefined) members.response = { status: Object(response).status, text };
  if (error instanceof Error) members.error = error.message;
  return { do: 'call', hook, context: members, memo, answer } as const;
}
