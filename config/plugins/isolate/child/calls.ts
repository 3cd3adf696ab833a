import { memoText } from '../../../../plugins-sdk/hooks/memo.ts';
import { packResult } from '../odd-values.ts';
import type { Order } from '../protocol.ts';
import { contextOf } from './context.ts';
import { errorText } from './thrown.ts';
import { begins, report } from './wire.ts';

export type Hook = (argument: unknown) => unknown;
type Called = Order & { readonly k: 'call' };

/** A call that has come, and the one that came after it: a list without methods, which the plugin may have replaced. */
interface Waiting {
  readonly order: Called;
  readonly text: (() => string) | undefined;
  next: Waiting | undefined;
}

/** What a call that runs is known by. */
interface Running {
  readonly id: number;
  isOver: boolean;
  controller: AbortController | undefined;
  /** Once the hook has looked at it. */
  memo: object | undefined;
}

/** Calls that are over and whose signal may yet abort. */
const MOST_SIGNALS = 1024;

/** Taken before the plugin is loaded, which may replace what everybody uses. */
const { nextTick } = process;
const microtask = queueMicrotask;
const Controller = AbortController;
const { get } = Reflect;

/** Runs the hooks, one after the other as far as they do not wait. */
export class Calls {
  #hooks: Readonly<Record<string, Hook>> = {};
  #first: Waiting | undefined;
  #last: Waiting | undefined;
  #isRunning = false;
  /** By the id of the call, which only grows: so the oldest comes first. */
  readonly #controllers: Record<number, AbortController> = Object.create(null);
  #signals = 0;

  use(hooks: Readonly<Record<string, Hook>>): void {
    this.#hooks = hooks;
  }

  add(order: Called, text: (() => string) | undefined): void {
    const waiting = { order, text, next: undefined };
    if (this.#last === undefined) this.#first = waiting;
    else this.#last.next = waiting;
    this.#last = waiting;
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#runNext();
  }

  abort(id: number): void {
    this.#controllers[id]?.abort();
    this.#forget(id);
  }

  readonly #runNext = (): void => {
    for (;;) {
      const waiting = this.#first;
      if (waiting === undefined) break;
      this.#first = waiting.next;
      if (this.#first === undefined) this.#last = undefined;
      if (this.#run(waiting.order, waiting.text)) continue;
      // What a call does in microtasks comes before the next call: that one may never give way.
      microtask(() => nextTick(this.#runNext));
      return;
    }
    this.#isRunning = false;
  };

  /** @returns whether the call is over already. */
  #run({ i, h, c, m }: Called, text: (() => string) | undefined): boolean {
    if (!begins(i)) {
      report({ k: 'skipped', i });
      return true;
    }
    const call: Running = { id: i, isOver: false, controller: undefined, memo: undefined };
    try {
      const memo = () => {
        call.memo ??= m ?? {};
        return call.memo;
      };
      const context = contextOf(h, c, text, { signal: () => this.#signal(call), memo });
      const hooks = this.#hooks;
      const returned = hooks[h]?.(context);
      const then: unknown = typeof returned === 'object' && returned !== null ? get(returned, 'then') : undefined;
      if (typeof then !== 'function') return this.#returned(call, returned);
      void this.#waitFor(call, returned);
      return false;
    } catch (error) {
      return this.#threw(call, error);
    }
  }

  /** `await` calls no method of promises, as long as they are of JavaScript itself. */
  async #waitFor(call: Running, returned: unknown): Promise<void> {
    try {
      this.#returned(call, await returned);
    } catch (error) {
      this.#threw(call, error);
    }
  }

  #returned(call: Running, value: unknown): true {
    try {
      const m = call.memo && memoText(call.memo);
      const packed = packResult(value);
      call.isOver = true;
      report({ k: 'done', i: call.id, ...packed, m });
    } catch (error) {
      return this.#threw(call, error);
    }
    return true;
  }

  #threw(call: Running, error: unknown): true {
    const text = errorText(error);
    call.isOver = true;
    report(text === undefined ? { k: 'threw', i: call.id } : { k: 'threw', i: call.id, text });
    return true;
  }

  /** The service is asked to tell of an abort only when somebody wants to hear of it, while the call is under way. */
  #signal(call: Running): AbortSignal {
    call.controller ??= this.#newController(call);
    return call.controller.signal;
  }

  #newController({ id, isOver }: Running): AbortController {
    const controller = new Controller();
    if (isOver) return controller;
    this.#controllers[id] = controller;
    this.#signals += 1;
    for (const oldest in this.#controllers) {
      if (this.#signals <= MOST_SIGNALS) break;
      this.#forget(Number(oldest));
    }
    report({ k: 'watch', i: id });
    return controller;
  }

  #forget(id: number): void {
    if (this.#controllers[id] === undefined) return;
    delete this.#controllers[id];
    this.#signals -= 1;
  }
}
