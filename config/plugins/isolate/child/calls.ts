import { packResult } from '../odd-values.ts';
import type { Order } from '../protocol.ts';
import { contextOf } from './context.ts';
import { textOf } from './thrown.ts';
import { begins, report } from './wire.ts';

export type Hook = (argument: unknown) => unknown;
type Called = Order & { readonly k: 'call' };

/** Calls that are over and whose signal may yet abort. */
const MOST_SIGNALS = 1024;

const { nextTick } = process;
const microtask = queueMicrotask;

/** Runs the hooks, one after the other as far as they do not wait. */
export class Calls {
  #hooks: Readonly<Record<string, Hook>> = {};
  readonly #waiting: { readonly order: Called; readonly text: (() => string) | undefined }[] = [];
  #next = 0;
  #isRunning = false;
  readonly #controllers = new Map<number, AbortController>();

  use(hooks: Readonly<Record<string, Hook>>): void {
    this.#hooks = hooks;
  }

  add(order: Called, text: (() => string) | undefined): void {
    this.#waiting.push({ order, text });
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#runNext();
  }

  abort(id: number): void {
    this.#controllers.get(id)?.abort();
    this.#controllers.delete(id);
  }

  readonly #runNext = (): void => {
    for (;;) {
      const waiting = this.#waiting[this.#next];
      if (waiting === undefined) break;
      this.#next += 1;
      if (this.#run(waiting.order, waiting.text)) continue;
      // What a call does in microtasks comes before the next call: that one may never give way.
      microtask(() => nextTick(this.#runNext));
      return;
    }
    this.#waiting.length = 0;
    this.#next = 0;
    this.#isRunning = false;
  };

  /** @returns whether the call is over already. */
  #run({ i, h, c }: Called, text: (() => string) | undefined): boolean {
    if (!begins(i)) {
      report({ k: 'skipped', i });
      return true;
    }
    try {
      const context = contextOf(h, c, text, () => this.#signal(i));
      const hooks = this.#hooks;
      const returned = hooks[h]?.(context);
      const then: unknown =
        typeof returned === 'object' && returned !== null ? Reflect.get(returned, 'then') : undefined;
      if (typeof then !== 'function') return this.#returned(i, returned);
      const settled = new Promise((resolve) => resolve(returned));
      settled.then(
        (value) => this.#returned(i, value),
        (error: unknown) => this.#threw(i, error),
      );
      return false;
    } catch (error) {
      return this.#threw(i, error);
    }
  }

  #returned(id: number, value: unknown): true {
    try {
      report({ k: 'done', i: id, ...packResult(value) });
    } catch (error) {
      return this.#threw(id, error);
    }
    return true;
  }

  #threw(id: number, error: unknown): true {
    const text = textOf(error);
    report(text === undefined ? { k: 'threw', i: id } : { k: 'threw', i: id, text });
    return true;
  }

  /** The service is asked to tell of an abort only when somebody wants to hear of it. */
  #signal(id: number): AbortSignal {
    const known = this.#controllers.get(id);
    if (known !== undefined) return known.signal;
    const controller = new AbortController();
    this.#controllers.set(id, controller);
    for (const [oldest] of this.#controllers)
      if (this.#controllers.size > MOST_SIGNALS) this.#controllers.delete(oldest);
    report({ k: 'watch', i: id });
    return controller.signal;
  }
}
