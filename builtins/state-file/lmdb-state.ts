import { hash } from 'node:crypto';
import { constants, statSync } from 'node:fs';
import { access, appendFile } from 'node:fs/promises';
import type { RootDatabase } from 'lmdb';
import { isRecord } from '../../lib/json/value.ts';
import { errorText } from '../../lib/text.ts';
import {
  type CompareAndSetOptions,
  type Conflict,
  type EngineServices,
  type StateArea,
  type StateEngine,
  StateUnavailable,
  takeFrom,
} from '../../plugins-sdk/state.ts';
import { explained } from '../shared/file-faults.ts';
import { checkFile, ENCODINGS } from './check.ts';
import { type Entry, type Room, Table } from './table.ts';
import { Waker } from './wake.ts';

const FIELD = 'settings.state';

/** Bytes of the longest key that is stored as it is. */
const LONGEST_KEY = 500;
/** Attempts to write after the newest commit; the second one mostly succeeds. */
const ATTEMPTS = 10;
/** Most keys, of which a payment takes two or three, and most bytes on the disk. */
const ROOM: Room = { keys: 1_000_000, bytes: 4 * 2 ** 30 };

/** Opens a file to append to it, and fails where a pipe has no reader yet, rather than waiting for one. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

type Env = RootDatabase<string, Buffer>;

interface Opened {
  readonly env: Env;
  /** The file and its `…-lock`, as they were opened, by their paths. */
  readonly files: ReadonlyMap<string, string | undefined>;
  readonly values: Table;
  readonly buckets: Table;
}

/** State in an LMDB file that all processes of a machine share. Each change is on the disk before it is confirmed. */
export class LmdbState implements StateEngine {
  readonly #path: string;
  readonly #services: EngineServices;
  readonly #room: Room;
  #opened: Opened | undefined;
  #renewal: Promise<void> | undefined;
  readonly #waker = new Waker();

  /** @param path absolute. */
  constructor(path: string, services: EngineServices, room = ROOM) {
    this.#path = path;
    this.#services = services;
    this.#room = room;
  }

  start(): Promise<void> {
    return explained(FIELD, this.#path, async (path) => {
      const lock = `${path}-lock`;
      await ensureLock(lock);
      const files = new Map([this.#path, lock].map((each) => [each, fileAt(each)]));
      await checkFile(path);
      const { open } = await import('lmdb');
      const mode = { noSubdir: true, permissionsMode: 0o600, maxReaders: 1024 };
      // No overlapping sync, no batches by event turn: the commit that confirms a step must have it on the disk.
      // No free pages are retained: another process may have taken them since.
      const order = { overlappingSync: false, eventTurnBatching: false, maxFreeSpaceToRetain: 0 };
      const env = open<string, Buffer>({ path, ...mode, ...order, ...ENCODINGS });
      this.#waker.start();
      const table = (name: string) => new Table(env.openDB({ name, ...ENCODINGS }), this.#room);
      const tables = () => ({ values: table('values'), buckets: table('buckets') });
      this.#opened = { env, files, ...(await this.#transaction({ env, files }, tables)) };
    });
  }

  doubts(): readonly string[] {
    return [];
  }

  area(name: string): StateArea {
    const area = encodeURIComponent(name);
    return {
      // A step, too: it runs after writes that timed out but may yet be done, and reads the newest commit.
      get: (key) => this.#step(({ values }, now) => textOf(values.read(placeOf(area, key), now))),
      compareAndSet: (key, expected, next, options) =>
        this.#step(({ values }, now) => swap(values, placeOf(area, key), [expected, next], { ...options, now })),
      takeTokens: (key, limit, n = 1, debt = 0) =>
        this.#step(({ buckets }, now) => {
          buckets.sweep(now);
          const own = placeOf(area, key);
          // Clients without room share one bucket, so that a flood of clients does not reset the limits of others.
          const place = buckets.hasRoom(own) ? own : Buffer.from(`${area}#`);
          const { bucket, ttl, ...taken } = takeFrom(bucketOf(buckets.read(place, now)), limit, { n, debt, now });
          buckets.put(place, bucket, now + ttl);
          return taken;
        }),
    };
  }

  async close(): Promise<void> {
    const env = this.#opened?.env;
    this.#opened = undefined;
    // A write that hangs holds a thread, and Node.js waits for its threads at the exit.
    const end = () => process.kill(process.pid, 'SIGKILL');
    process.once('exit', end);
    await env?.close();
    process.off('exit', end);
    this.#waker.end();
  }

  /** Runs one step, atomic for all processes. Waiting steps share a write to the disk. @throws StateUnavailable */
  async #step<T>(run: (opened: Opened, now: number) => T): Promise<T> {
    try {
      const opened = this.#opened;
      if (opened === undefined) throw new StateUnavailable('the state file is not open');
      return await this.#transaction(opened, () => run(opened, this.#services.now()));
    } catch (error) {
      if (error instanceof StateUnavailable) throw error;
      throw new StateUnavailable(`the state file ${this.#path} cannot be written: ${await reasonOf(error)}`);
    }
  }

  /**
   * Runs a transaction on the newest commit. A process that opens the file records in `…-lock` which commit was the newest when
   * it began to open. If another commit was made since then, the next transaction would undo that one: it writes nothing, and
   * the file is opened once more.
   */
  async #transaction<T>({ env, files }: Pick<Opened, 'env' | 'files'>, run: () => T): Promise<T> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const commit = () => {
        // A process that started by now uses the files at the paths: it knows no payment of this one, or does not wait for it.
        for (const [path, file] of files)
          if (fileAt(path) !== file)
            throw new StateUnavailable(`the state file ${path} was deleted or replaced: restart all its processes`);
        return isOnNewest(env) ? { result: run() } : undefined;
      };
      const done = await this.#waker.during(() => env.transaction(commit));
      if (done !== undefined) return done.result;
      const over = () => {
        this.#renewal = undefined;
      };
      this.#renewal ??= checkFile(this.#path, []).then(over, over);
      await this.#renewal;
    }
    throw new Error('its newest commit is not to be had, since processes keep opening it');
  }
}

/**
 * Makes sure that `…-lock` can be opened, and has room on the disk: otherwise the library crashes. One byte takes the first
 * page. A lock that is not empty may be in use, and is not opened here: to close it would end the locks of this process.
 */
async function ensureLock(lock: string): Promise<void> {
  const about = statSync(lock, { throwIfNoEntry: false });
  if (about?.isFile() && about.size > 0) await access(lock, constants.R_OK | constants.W_OK);
  else await appendFile(lock, '\0', { mode: 0o600, flag: APPEND });
}

/** Identifies the file that is at a path now, by device and inode. */
const fileAt = (path: string) => JSON.stringify(statSync(path, { throwIfNoEntry: false }), ['dev', 'ino']);

/** Whether the current transaction follows the newest commit. */
function isOnNewest(env: Env): boolean {
  return env.getWriteTxnId() === Number(Reflect.get(env.getStats(), 'lastTxnId')) + 1;
}

/** Returns the stored form of a key; a long one becomes its hash, in a form that no other key has. */
function placeOf(area: string, key: string): Buffer {
  const text = JSON.stringify(key);
  const place = Buffer.from(`${area}/${text}`);
  return place.length <= LONGEST_KEY ? place : Buffer.from(`${area}#${hash('sha256', text)}`);
}

function swap(
  values: Table,
  place: Buffer,
  [expected, next]: readonly [expected: string | undefined, next: string | undefined],
  { now, ttl = Number.POSITIVE_INFINITY, keepLonger = false }: CompareAndSetOptions & { readonly now: number },
): Conflict | undefined {
  values.sweep(now);
  const found = values.read(place, now);
  const value = textOf(found);
  if (value !== expected) return value === undefined ? {} : { value };
  if (next === undefined) values.remove(place);
  else if (!values.hasRoom(place)) throw new StateUnavailable('no room is left in the state file for another key');
  else values.put(place, next, Math.max(now + ttl, keepLonger ? (found?.ends ?? 0) : 0));
  return undefined;
}

function textOf(entry: Entry | undefined): string | undefined {
  return typeof entry?.content === 'string' ? entry.content : undefined;
}

function bucketOf(entry: Entry | undefined): { readonly used: number; readonly at: number } | undefined {
  if (!isRecord(entry?.content)) return undefined;
  const { used, at } = entry.content;
  return typeof used === 'number' && typeof at === 'number' ? { used, at } : undefined;
}

/** Returns the system's message about a failed commit, without the place in the file. */
async function reasonOf(error: unknown): Promise<string> {
  const isCommit = error instanceof Error && 'commitError' in error;
  const cause: unknown = isCommit ? await Promise.resolve(error.commitError).catch((reason: unknown) => reason) : error;
  return errorText(cause).replace(/: .*/s, '');
}
