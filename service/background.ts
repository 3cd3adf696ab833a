import type { Log } from '../plugins-sdk/log.ts';

/** Work that plugins go on with beside requests, until it ends. */
export class Background {
  readonly #failed: (plugin: string, error: unknown) => void;
  readonly #running = new Map<Promise<unknown>, string>();

  /** @param failed told of each rejection. */
  constructor(failed: (plugin: string, error: unknown) => void) {
    this.#failed = failed;
  }

  get size(): number {
    return this.#running.size;
  }

  /** @throws TypeError */
  add(plugin: string, work: Promise<unknown>): void {
    const then: unknown = Reflect.get(Object(work), 'then');
    // A function would never be called, and nobody would notice.
    if (typeof then !== 'function') throw new TypeError('services.background takes a promise');
    const ended: Promise<unknown> = Promise.resolve(work)
      .catch((error: unknown) => this.#failed(plugin, error))
      .finally(() => this.#running.delete(ended));
    this.#running.set(ended, plugin);
  }

  /** Resolves when nothing is left. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.keys());
  }

  /** Says what is left, a line for each plugin, once. */
  tell(log: Pick<Log, 'error'>): void {
    const plugins = [...this.#running.values()];
    for (const plugin of new Set(plugins)) {
      const count = plugins.filter((each) => each === plugin).length;
      log.error(`plugin "${plugin}": work in the background was cut off`, { count });
    }
    this.#running.clear();
  }
}
