import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, type Zlib } from 'node:zlib';

/** Bytes that arrive in pieces, up to a limit. */
export class BoundedBuffer {
  readonly #limit: number;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** False when the limit is exceeded; nothing is added then. */
  append(chunk: Buffer): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#limit) return false;
    // One buffer that grows: a list of one-byte chunks would cost a hundred times their bytes.
    if (length > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#limit, Math.max(length, 2 * this.#buffer.length)));
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length = length;
    return true;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

export type Compression = 'gzip' | 'deflate' | 'br';
export type Coding = 'identity' | Compression;

const CODINGS = new Map<string, Coding>([
  ['', 'identity'],
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  // RFC 9110, section 8.4.1.3: "x-gzip" is to be taken as "gzip".
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
]);

/** The one content coding of a body; undefined when it is unknown or there are several. */
export function codingOf(header: string | string[] | undefined): Coding | undefined {
  const name = String(header ?? '').trim();
  return CODINGS.get(name.toLowerCase());
}

/** Codings that a text names. */
const MOST_NAMES = 4;

/** What is wrong with codings that are not read, by their names where these are some. */
export function codingFault(header: string | string[] | undefined): string {
  const names = String(header)
    .split(',', MOST_NAMES)
    .map((name) => name.trim());
  const shown = names.every((name) => /^[\w.-]{1,32}$/.test(name)) ? names.join(', ') : undefined;
  if (names.length > 1) return `the answer has several content encodings${shown === undefined ? '' : ` (${shown})`}`;
  return shown === undefined
    ? 'the answer has an unknown content encoding'
    : `the answer has the unknown content encoding ${shown}`;
}

/** A coding adds a little to data that cannot be compressed, so a body of just `maxBytes` may be longer while coded. */
export function codedLimit(maxBytes: number): number {
  return maxBytes + Math.ceil(maxBytes / 256) + 1024;
}

/** A coded body is longer than it may be. */
export class TooLarge extends Error {}

/** What decompresses a coding, or a deflate stream without its header. */
const decompress = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
  deflate: promisify(inflate),
  raw: promisify(inflateRaw),
};

/**
 * The body that one coded stream stands for. Clients disagree about what follows the first stream, and what two clients read
 * differently must not be signed.
 *
 * @throws TooLarge
 * @throws Error whose message is fit for a log
 */
export async function decoded(coding: Compression, coded: Buffer, maxBytes: number): Promise<Buffer> {
  const isRaw = coding === 'deflate' && !hasZlibHeader(coded);
  // The bound must be at least 1.
  const options = { info: true, maxOutputLength: Math.max(maxBytes, 1) };
  const result: unknown = await decompress[isRaw ? 'raw' : coding](coded, options).catch((error) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE' ? new TooLarge() : new Error(`the answer is not valid ${coding}`);
  });
  // With `info` it is another result than its type says.
  const { buffer: body, engine } = result as { readonly buffer: Buffer; readonly engine: Zlib };
  if (body.length > maxBytes) throw new TooLarge();
  // The length at the end of gzip counts its last member alone (RFC 1952, section 2.3.1), so it shows one before that has data.
  const isOne =
    coding !== 'gzip' || (coded.readUInt32LE(coded.length - 4) === body.length && !coded.includes(AFTER_EMPTY_MEMBER));
  if (engine.bytesWritten !== coded.length || !isOne) throw new Error(`the answer is more than one ${coding} stream`);
  return body;
}

/** Checksum and length of no data, and the start of another member. */
const AFTER_EMPTY_MEMBER = Buffer.from('00000000000000001f8b08', 'hex');

/**
 * "deflate" is the zlib format (RFC 9110, section 8.4.1.2), but some servers send the bare deflate stream. A zlib header
 * has the method 8 and is a multiple of 31 (RFC 1950, section 2.2).
 */
function hasZlibHeader(coded: Buffer): boolean {
  return coded.length >= 2 && ((coded[0] ?? 0) & 0x0f) === 8 && coded.readUInt16BE(0) % 31 === 0;
}
