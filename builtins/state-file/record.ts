import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';

/** A key with what stands under it, or nothing, and the end of that in epoch milliseconds, if it has one. */
export type Change = readonly [key: string, value: string | null, expiresAt: number | null];

const FORMAT = 'signed-data-proxy state';
const VERSION = 1;

/** More than any first line of the format is long. */
const HEAD = 256;
const CHUNK = 1 << 20;
const LINE_FEED = 10;

const RESTORE = 'restore it from a backup, or move it away: then payments made before now are refused';

const hex = (checksum: number) => checksum.toString(16).padStart(8, '0');

/**
 * A line of the file: a checksum of what is behind it, the length of the file that was known to be on disk when it was
 * written, and what it says.
 */
export function line(synced: number, json: string): Buffer {
  const body = `${synced} ${json}`;
  return Buffer.from(`${hex(crc32(body))} ${body}\n`);
}

export const header = line(0, JSON.stringify([FORMAT, VERSION]));

/**
 * What is written when nothing else is: it says that all before it is on disk, so that damage to the last change is not
 * taken for a write that did not end. There are two lines, lest damage to the line feed before them take the only one along.
 */
export function seal(synced: number): Buffer {
  return Buffer.concat([line(synced, '[]'), line(synced, '[]')]);
}

/** @returns `undefined` for a line that is damaged. */
function parse(bytes: Buffer): { readonly synced: number; readonly content: unknown } | undefined {
  if (bytes.toString('latin1', 0, 9) !== `${hex(crc32(bytes.subarray(9)))} `) return undefined;
  const [, synced = '', json = ''] = /^(\d+) (.*)$/s.exec(bytes.toString('utf8', 9)) ?? [];
  try {
    return { synced: Number(synced), content: JSON.parse(json) };
  } catch {
    return undefined;
  }
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

/** @throws Error when the file begins in another way than those of this service. */
function checkHeader(path: string, head: Buffer): void {
  if (head.subarray(0, header.length).equals(header)) return;
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

interface Line {
  readonly offset: number;
  /** Without the line feed. */
  readonly bytes: Buffer;
  /** Whether there was a line feed. */
  readonly whole: boolean;
}

async function* linesOf(file: FileHandle, from: number): AsyncGenerator<Line> {
  let offset = from;
  let begun: Buffer[] = [];
  for await (const chunk of file.createReadStream({ start: from, autoClose: false, highWaterMark: CHUNK })) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const bytes = Buffer.concat([...begun, chunk.subarray(start, end)]);
      yield { offset, bytes, whole: true };
      offset += bytes.length + 1;
      begun = [];
      start = end + 1;
    }
    begun.push(chunk.subarray(start));
  }
  const bytes = Buffer.concat(begun);
  if (bytes.length > 0) yield { offset, bytes, whole: false };
}

/** What a file came to. */
export interface Replayed {
  /** Bytes of whole lines, from the beginning. */
  readonly size: number;
  /** Bytes behind them that a write which did not end has left. */
  readonly torn: number;
  /** Whether its last line says that all before it is on disk. */
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
  checkHeader(path, buffer.subarray(0, bytesRead));
  let end = header.length;
  let size = end;
  let intact = true;
  let sealed = false;
  for await (const { offset, bytes, whole } of linesOf(file, header.length)) {
    end = offset + bytes.length + (whole ? 1 : 0);
    const read = whole ? changesIn(bytes) : undefined;
    if (read !== undefined && read.synced > size) throw damaged(path, size);
    intact &&= read !== undefined;
    if (!intact || read === undefined) continue;
    size = end;
    sealed = read.changes.length === 0;
    apply(read.changes);
  }
  return { size, torn: end - size, sealed: sealed && end === size };
}

function damaged(path: string, offset: number): Error {
  return new Error(
    `settings.state: ${path} is damaged at byte ${offset} (a record in the middle does not match its checksum): ` +
      RESTORE,
  );
}
