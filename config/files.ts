import { constants, createReadStream, fstatSync, open } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { LATE, withTimeout } from '../lib/time.ts';
import { errorAt } from '../plugins-sdk/define.ts';
import { ConfigErrors } from './findings.ts';

const MAX_BYTES = 1024 * 1024;
const READ_TIMEOUT_MS = 5000;

/** Texts for codes of the file system. */
const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'file not found',
  EISDIR: 'is a directory, expected a file',
  EACCES: 'cannot be read, permission denied',
  EPERM: 'cannot be read, permission denied',
};

/**
 * Reads a file of at most `most` bytes (default 1 MiB), in at most 5 seconds. The writer of a pipe may never come or never end,
 * so the wait for it takes no thread, which would keep the process from exiting. A file system that hangs lets no stream be
 * destroyed, so the wait ends without it.
 *
 * @param stream read in place of the file, to its end.
 * @throws ConfigErrors when the file cannot be read, with the `code` of the file system; when it is larger, or takes longer.
 */
export async function readBounded(file: string, most = MAX_BYTES, stream?: Readable): Promise<Buffer> {
  const source = Promise.resolve(stream ?? opened(file));
  const patience = stream === undefined ? READ_TIMEOUT_MS : Number.POSITIVE_INFINITY;
  const bytes = await withTimeout(patience, readAtMost(most, source)).catch(({ code }) => {
    const why = errorAt(file, reasons[code] ?? `cannot be read (${code})`);
    throw Object.assign(new ConfigErrors([why]), { code });
  });
  if (bytes === undefined) throw new ConfigErrors([errorAt(file, `larger than ${most / MAX_BYTES} MiB`)]);
  if (bytes !== LATE) return bytes;
  source.then(
    (late) => late.destroy(),
    () => undefined,
  );
  throw new ConfigErrors([errorAt(file, `was not read to its end within ${READ_TIMEOUT_MS} ms`)]);
}

/** Decodes UTF-8 text. @throws ConfigErrors for other bytes. */
export function decode(bytes: Buffer, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigErrors([errorAt(file, 'is not UTF-8 text')]);
  }
}

/** Reads a stream to its end. A pipe or device has no size to check beforehand. @returns undefined for more than `most` bytes. */
async function readAtMost(most: number, stream: Promise<Readable>): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of await stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > most) return undefined;
  }
  return Buffer.concat(chunks);
}

/** Opens a file without blocking: opening a pipe would wait for its writer, and block one of node's few file-system threads. */
async function opened(file: string): Promise<Readable> {
  const fd = await promisify(open)(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const isPipe = fstatSync(fd).isFIFO();
  return isPipe ? new Socket({ fd, readable: true, writable: false }) : createReadStream(file, { fd });
}
