import * as nodeFiles from 'node:fs/promises';
import {
  BoundedTtlMap,
  MemoryArea,
  type StateArea,
  type StateEngine,
  StateUnavailable,
} from '../../plugins-sdk/index.ts';
import type { CompareAndSetOptions, Conflict, EngineServices } from '../../plugins-sdk/state/area.ts';
import { swapIn } from '../../plugins-sdk/state/memory-area.ts';
import { explained, realFile } from '../shared/file-faults.ts';
import { ChangeLog } from './change-log.ts';
import type { StateFiles } from './line-file.ts';
import { lock } from './lock.ts';
import { packed, unpacked } from './packed.ts';
import type { Change } from './record.ts';

const FIELD = 'settings.state';

export interface FileStateOptions {
  readonly files?: StateFiles;
  /** Most keys, and most buckets, that live at once; 1,000,000 by default. */
  readonly capacity?: number;
}

/** State in memory, every change of which is written to a file. Buckets are not: a limit begins anew with the process. */
export class FileState implements StateEngine {
  readonly #path: string;
  readonly #services: EngineServices;
  readonly #files: StateFiles;
  /** Keys and values, packed. */
  readonly #values: BoundedTtlMap<string>;
  readonly #buckets: MemoryArea;
  #log: ChangeLog | undefined;
  #lock: nodeFiles.FileHandle | undefined;

  /** @param path absolute. */
  constructor(
    path: string,
    services: EngineServices,
    { files = nodeFiles, capacity = 1_000_000 }: FileStateOptions = {},
  ) {
    this.#path = path;
    this.#services = services;
    this.#files = files;
    this.#values = new BoundedTtlMap(capacity);
    this.#buckets = new MemoryArea({ capacity, now: () => services.now() });
  }

  async start(): Promise<void> {
    const files = this.#files;
    const { log } = this.#services;
    const work = explained(FIELD, this.#path, async () => {
      const path = await realFile(FIELD, files, this.#path);
      this.#lock = await lock(path);
      const now = () => this.#services.now();
      this.#log = new ChangeLog({ path, files, log, now, live: () => this.#live(), size: () => this.#values.size });
      await this.#log.start((changes) => this.#apply(changes));
    });
    await work.catch(async (error) => {
      await this.close();
      throw error;
    });
  }

  doubts(): readonly string[] {
    return [];
  }

  area(name: string): StateArea {
    const prefix = `${encodeURIComponent(name)}/`;
    return {
      get: async (key) => {
        const value = this.#values.get(packed(prefix + key), this.#services.now());
        return value && unpacked(value);
      },
      compareAndSet: (key, expected, next, options) => this.#swap(prefix + key, [expected, next], options),
      takeTokens: (key, limit, n, debt) => this.#buckets.takeTokens(prefix + key, limit, n, debt),
    };
  }

  async close(): Promise<void> {
    const log = this.#log;
    // Who still asks must not write: another process may have the file by then.
    this.#log = undefined;
    try {
      await log?.close();
    } finally {
      await this.#lock?.close();
      this.#lock = undefined;
    }
  }

  async #swap(
    key: string,
    [expected, next]: readonly [expected: string | undefined, next: string | undefined],
    options: CompareAndSetOptions = {},
  ): Promise<Conflict | undefined> {
    const log = this.#log;
    if (log === undefined) throw new StateUnavailable('the state file is not open');
    const sound = log.sound();
    if (sound !== undefined) await sound;
    const now = this.#services.now();
    const place = packed(key);
    const [seen, kept] = [expected && packed(expected), next && packed(next)];
    const standing = swapIn(this.#values, place, [seen, kept], { ...options, now });
    if (standing !== undefined) return standing.value ? { value: unpacked(standing.value) } : standing;
    const durable = options.durable === true;
    // What changes nothing asks only whether the file can be written.
    if (expected === undefined && next === undefined && !durable) return undefined;
    const end = this.#values.expiry(place, now);
    const stands = this.#values.get(place, now);
    const written = log.append(changeOf(key, stands && unpacked(stands), end), durable);
    if (durable) await written;
    // An error is told to the next one who asks.
    else written.catch(() => undefined);
    return undefined;
  }

  #apply(changes: readonly Change[]): void {
    const now = this.#services.now();
    for (const [key, value, expiresAt] of changes) {
      const end = expiresAt ?? Number.POSITIVE_INFINITY;
      if (value === null || end <= now) this.#values.delete(packed(key));
      else if (!this.#values.set(packed(key), packed(value), end, now))
        throw new Error(
          `settings.state: ${this.#path} holds more keys than there is room for: has the clock been set back?`,
        );
    }
  }

  *#live(): Generator<Change> {
    for (const { key, value, expiresAt } of this.#values.live(this.#services.now())) {
      yield changeOf(unpacked(key), unpacked(value), expiresAt);
    }
  }
}

function changeOf(key: string, value: string | undefined, end = Number.POSITIVE_INFINITY): Change {
  return [key, value ?? null, Number.isFinite(end) ? end : null];
}
