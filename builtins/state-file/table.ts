import { crc32 } from 'node:zlib';
import type { Database } from 'lmdb';
import { jsonIn } from '../../lib/json/value.ts';
import { StateUnavailable } from '../../plugins-sdk/state.ts';

/** Entries that each step looks at: what has ended goes faster than anything is added. */
const SWEPT = 8;
/** Characters of a checksum. */
const SUM = 8;
const FIRST = Buffer.alloc(0);

export interface Entry {
  readonly content: unknown;
  /** Epoch milliseconds, or never. */
  readonly ends: number;
}

/** Most that a table may hold. */
export interface Room {
  readonly keys: number;
  readonly bytes: number;
}

/** Entries of one kind, each a checksum of the key and of what follows, and that as JSON. All but `read` is for transactions. */
export class Table {
  readonly #db: Database<string, Buffer>;
  readonly #room: Room;
  #cursor: Buffer = FIRST;

  constructor(db: Database<string, Buffer>, room: Room) {
    this.#db = db;
    this.#room = room;
  }

  /** What stands under a key and has not ended. @throws StateUnavailable when it is damaged. */
  read(key: Buffer, now: number): Entry | undefined {
    const text = this.#db.get(key);
    const entry = text === undefined ? undefined : entryOf(key, text);
    return entry !== undefined && entry.ends > now ? entry : undefined;
  }

  hasRoom(key: Buffer): boolean {
    if (this.#db.doesExist(key)) return true;
    const stats = this.#db.getStats();
    // Its type does not say what it counts.
    const count = (name: string) => Number(Reflect.get(stats, name));
    const pages = count('treeLeafPageCount') + count('treeBranchPageCount') + count('overflowPages');
    return count('entryCount') < this.#room.keys && pages * count('pageSize') < this.#room.bytes;
  }

  put(key: Buffer, content: unknown, ends: number): void {
    const text = JSON.stringify([Number.isFinite(ends) ? ends : null, content]);
    this.#db.put(key, sumOf(key, text) + text);
  }

  remove(key: Buffer): void {
    this.#db.remove(key);
  }

  /** Removes what has ended among the next few entries; after the last come the first again. */
  sweep(now: number): void {
    const range = this.#db.getRange({ start: this.#cursor, limit: SWEPT });
    // A key that was read is valid until the next one is.
    const some = [...range.map(({ key, value }) => ({ key: Buffer.from(key), value }))];
    for (const { key, value } of some) if (entryOf(key, value).ends <= now) this.#db.remove(key);
    const last = some[SWEPT - 1];
    this.#cursor = last === undefined ? FIRST : Buffer.concat([last.key, Buffer.alloc(1)]);
  }
}

function sumOf(key: Buffer, text: string): string {
  return crc32(`${key}${text}`).toString(16).padStart(SUM, '0');
}

function entryOf(key: Buffer, stored: string): Entry {
  const text = stored.slice(SUM);
  const entry = sumOf(key, text) === stored.slice(0, SUM) ? jsonIn(text) : undefined;
  if (!Array.isArray(entry)) throw new StateUnavailable(`the state file is damaged at the key ${key}`);
  const [ends, content]: unknown[] = entry;
  return { content, ends: typeof ends === 'number' ? ends : Number.POSITIVE_INFINITY };
}
