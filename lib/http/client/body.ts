import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type Zlib, type ZlibOptions } from 'node:zlib';
import { type BoundedResponse, RequestFailure } from './request.ts';

type Decompress = (coded: Buffer, options: ZlibOptions) => Promise<unknown>;

const DECOMPRESSORS: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify<Buffer, ZlibOptions, Buffer>(brotliDecompress)],
]);

/** The codings of a body that is as it was sent. */
const IDENTITY = ['', 'identity'];

/** Most content codings that the text of a fault names. */
const MOST_NAMES = 4;

const tooLarge = (maxBytes: number) =>
  new RequestFailure('too-large', `the answer is larger than ${maxBytes} bytes`, 'answer');
const unreadable = (reason: string) => new RequestFailure('encoding', reason, 'answer');

/** Collects the body of an answer from its chunks. */
export type AnswerBody = ReturnType<typeof answerBody>;

/** Begins the body of an answer. @throws RequestFailure when the headers show an unknown coding or a body that is too large. */
export function answerBody(
  { 'content-encoding': encoding = '', 'content-length': length }: BoundedResponse['headers'],
  maxBytes: number,
) {
  // RFC 9110, section 5.6.1: empty elements of a list are ignored.
  const names = String(encoding).match(/[^\s,]+/g) ?? [];
  // RFC 9110, section 8.4.1.3: "x-gzip" is to be taken as "gzip".
  const coding = names.join().toLowerCase().replace('x-gzip', 'gzip');
  const decompress = DECOMPRESSORS.get(coding);
  if (decompress === undefined && !IDENTITY.includes(coding)) throw unreadable(unsupported(names));
  // Compression makes incompressible data a little longer.
  const limit = decompress === undefined ? maxBytes : maxBytes + Math.ceil(maxBytes / 256) + 1024;
  if (Number(length) > limit) throw tooLarge(maxBytes);
  let buffer = Buffer.alloc(0);
  let filled = 0;
  return {
    /** Adds a chunk. @throws RequestFailure when the body gets too large. */
    append(chunk: Buffer): void {
      const needed = filled + chunk.length;
      if (needed > limit) throw tooLarge(maxBytes);
      // One buffer that grows: a list of one-byte chunks would cost a hundred times their bytes.
      if (needed > buffer.length) {
        const grown = Buffer.allocUnsafe(Math.min(limit, Math.max(needed, 2 * buffer.length)));
        buffer.copy(grown, 0, 0, filled);
        buffer = grown;
      }
      chunk.copy(buffer, filled);
      filled = needed;
    },
    /** Returns the decompressed body. It is a promise, which may reject with a RequestFailure, if there is something to decompress. */
    read(): Buffer | Promise<Buffer> {
      const bytes = buffer.subarray(0, filled);
      // An empty body is not decompressed, whatever coding was announced: HTTP clients agree on that.
      return decompress === undefined || filled === 0 ? bytes : decoded(bytes, coding, decompress, maxBytes);
    },
  };
}

/** Describes unsupported codings. Names them only if they look like names. */
function unsupported(all: readonly string[]): string {
  const names = all.slice(0, MOST_NAMES);
  const shown = names.every((name) => /^[\w.-]{1,32}$/.test(name)) ? names.join(', ') : undefined;
  if (names.length > 1) return `the answer has several content encodings${shown === undefined ? '' : ` (${shown})`}`;
  return shown === undefined
    ? 'the answer has an unknown content encoding'
    : `the answer has the unknown content encoding ${shown}`;
}

/**
 * Decompresses a body of exactly one coded stream. HTTP clients disagree about bytes after the first stream, and a body that two
 * clients read differently must not be signed.
 *
 * @throws RequestFailure when the body is invalid, too large, or more than one stream.
 */
async function decoded(coded: Buffer, coding: string, decompress: Decompress, maxBytes: number): Promise<Buffer> {
  // zlib requires a bound of at least 1.
  const options = { info: true, maxOutputLength: Math.max(maxBytes, 1) };
  const result = await decompress(coded, options).catch((error) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(maxBytes) : unreadable(`the answer is not valid ${coding}`);
  });
  // With `info` the result is an object, which the type does not declare.
  const { buffer: body, engine } = result as { readonly buffer: Buffer; readonly engine: Zlib };
  if (body.length > maxBytes) throw tooLarge(maxBytes);
  // The length at the end of gzip is the last member's alone (RFC 1952, section 2.3.1): it differs if an earlier one has data.
  const isOne =
    coding !== 'gzip' || (coded.readUInt32LE(coded.length - 4) === body.length && !coded.includes(AFTER_EMPTY_MEMBER));
  if (engine.bytesWritten === coded.length && isOne) return body;
  throw unreadable(`the answer is more than one ${coding} stream`);
}

/** Checksum and length of an empty gzip member, and the start of another member. */
const AFTER_EMPTY_MEMBER = Buffer.from('00000000000000001f8b08', 'hex');
