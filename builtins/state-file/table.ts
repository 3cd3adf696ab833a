import { crc32 } from 'node:zlib';
import type { Database } from 'lmdb';
import { jsonIn } from '../../lib/json/value.ts';
import { StateUnavailable } from '../../plugins-sdk/state.ts';

/** Entries that each step checks. A step adds one at most, so expired ones go faster than new ones come. */
const SWEPT = 8;
/** Characters of a checksum (CRC-32 in hex). */
const SUM = 8;
const FIRST = Buffer.alloc(0);

export interface Entry {
  readonly content: unknown;
  /** Expiry in epoch milliseconds; infinite for an entry without one. */
  readonly ends: number;
}

/** The bounds of a table. */
export interface Room {
  readonly keys: number;
  readonly bytes: number;
}

/** Entries of one kind, each stored as a checksum of key and JSON, then the JSON. All methods but `read` are for transactions. */
export class Table {
  readonly #db: Database<string, Buffer>;
  readonly #room: Room;
  #cursor: Buffer = FIRST;

  constructor(db: Database<string, Buffer>, room: Room) {
    this.#db = db;
    this.#room = room;
  }

  /** Returns the entry of a key, unless it has expired. @throws StateUnavailable if it is damaged. */
  read(key: Buffer, now: number): Entry | undefined {
    const text = this.#db.get(key);
    const entry = text === undefined ? undefined : entryOf(key, text);
    return entry !== undefined && entry.ends > now ? entry : undefined;
  }

  hasRoom(key: Buffer): boolean {
    if (this.#db.doesExist(key)) return true;
    const stats = this.#db.getStats();
    // The library's type for statistics has no members.
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

  /** Removes the expired ones of the next few entries; after the last entry it starts over. */
  sweep(now: number): void {
    const range = this.#db.getRange({ start: this.#cursor, limit: SWEPT });
    // Copied: a key's buffer is valid only until the next key is read.
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
