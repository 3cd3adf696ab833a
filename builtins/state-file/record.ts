import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { linesOf } from '../../lib/files/lines.ts';
import { jsonIn } from '../../lib/json/value.ts';

/** A key with what stands under it, or nothing, and the end of that in epoch milliseconds, if it has one. */
export type Change = readonly [key: string, value: string | null, expiresAt: number | null];

const FORMAT = 'signed-data-proxy state';
const VERSION = 2;
/** Without a mark, so that a file which has lost its end cannot be told from one that was shorter. */
const UNMARKED = 1;

/** More than any first line of the format is long. */
const HEAD = 256;
const CHUNK = 1 << 20;
const LINE_FEED = 10;

const RESTORE = 'restore it from a backup, or move it away: then payments made before now are refused';

const hex = (checksum: number) => checksum.toString(16).padStart(8, '0');

/**
 * A line of the file. It begins with a checksum of what is behind it. Then come the length of the file that was known to be on disk when it was
 * written, and what it says.
 */
export function line(synced: number | string, json: string): Buffer {
  const body = `${synced} ${json}`;
  return Buffer.from(`${hex(crc32(body))} ${body}\n`);
}

const headerOf = (version: number) => line(0, JSON.stringify([FORMAT, version]));
export const header = headerOf(VERSION);
const headers: ReadonlyMap<string, number> = new Map(
  [VERSION, UNMARKED].map((version) => [headerOf(version).toString(), version]),
);

/** Digits of the greatest length that a file can have. */
const DIGITS = 16;

/**
 * The second line, always as long, which is written over and over: so many bytes of the file were on disk. It tells a file that has
 * lost its end, and damage to the last change, from a write that did not end.
 */
export function mark(synced: number): Buffer {
  return line(String(synced).padStart(DIGITS, '0'), '[]');
}

function markedIn(bytes: Buffer): number | undefined {
  const { synced } = parse(bytes.subarray(0, -1)) ?? {};
  return synced !== undefined && mark(synced).equals(bytes) ? synced : undefined;
}

/** Bytes before the first change. */
export const BEGIN = header.length + mark(0).length;

/** @returns `undefined` for a line that is damaged. */
function parse(bytes: Buffer): { readonly synced: number; readonly content: unknown } | undefined {
  if (bytes.toString('latin1', 0, 9) !== `${hex(crc32(bytes.subarray(9)))} `) return undefined;
  const [, synced = '', json = ''] = /^(\d+) (.*)$/s.exec(bytes.toString('utf8', 9)) ?? [];
  const content = jsonIn(json);
  return content === undefined ? undefined : { synced: Number(synced), content };
}

function isChange(value: unknown): value is Change {
  if (!Array.isArray(value) || value.length !== 3) return false;
  const [key, text, end] = value;
  return (
    typeof key === 'string' && (text === null || typeof text === 'string') && (end === null || Number.isFinite(end))
  );
}

function changesIn(bytes: Buffer): { readonly synced: number; readonly changes: readonly Change[] } | undefined {
  const { synced, content } = parse(bytes) ?? {};
  if (synced === undefined || !Array.isArray(content) || !content.every(isChange)) return undefined;
  return { synced, changes: content };
}

/** @returns the version. @throws Error when the file begins in another way than those of this service. */
function versionOf(path: string, head: Buffer): number {
  const known = headers.get(head.toString('latin1', 0, header.length));
  if (known !== undefined) return known;
  const end = head.indexOf(LINE_FEED);
  const content = end === -1 ? undefined : parse(head.subarray(0, end))?.content;
  const [format, version] = Array.isArray(content) ? content : [];
  throw new Error(`settings.state: ${path} ${whatBegins(head, format === FORMAT ? version : undefined)}`);
}

function whatBegins(head: Buffer, version: unknown): string {
  if (version !== undefined) return `is of version ${version}, which this release cannot read: install a newer one`;
  if (head.every((byte) => byte === 0)) return `holds nothing but zeros: ${RESTORE}`;
  if (header.subarray(0, head.length).equals(head)) return `ends within its first line: ${RESTORE}`;
  return 'is no state file of this service, or its first line is damaged: change path, or restore it from a backup';
}

/** What a file came to. */
export interface Replayed {
  /** Bytes of whole lines, from the beginning. */
  readonly size: number;
  /** Bytes behind them that a write which did not end has left. */
  readonly torn: number;
  /** Whether all of it was on disk. */
  readonly sealed: boolean;
}

/**
 * Reads a file from the beginning.
 * @returns `undefined` when it is empty.
 * @throws Error when it is damaged where it was on disk already: what was acknowledged would be lost.
 */
export async function replay(
  path: string,
  file: FileHandle,
  apply: (changes: readonly Change[]) => void,
): Promise<Replayed | undefined> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD), 0, HEAD, 0);
  if (bytesRead === 0) return undefined;
  const head = buffer.subarray(0, bytesRead);
  const isMarked = versionOf(path, head) === VERSION;
  let size = isMarked ? BEGIN : header.length;
  const marked = isMarked ? markedIn(head.subarray(header.length, BEGIN)) : 0;
  if (marked === undefined) throw damaged(path, header.length);
  let end = size;
  let intact = true;
  const chunks = file.createReadStream({ start: size, autoClose: false, highWaterMark: CHUNK });
  for await (const lines of linesOf(chunks, size)) {
    for (const { offset, bytes, whole } of lines) {
      end = offset + bytes.length + (whole ? 1 : 0);
      const read = whole ? changesIn(bytes) : undefined;
      if (read !== undefined && read.synced > size) throw damaged(path, size);
      intact &&= read !== undefined;
      if (!intact || read === undefined) continue;
      size = end;
      apply(read.changes);
    }
  }
  if (marked > end) throw new Error(`settings.state: ${path} ends at byte ${end}, and had ${marked}: ${RESTORE}`);
  if (marked > size) throw damaged(path, size);
  return { size, torn: end - size, sealed: marked === end };
}

function damaged(path: string, offset: number): Error {
  return new Error(
    `settings.state: ${path} is damaged at byte ${offset} (a record in the middle does not match its checksum): ` +
      RESTORE,
  );
}
