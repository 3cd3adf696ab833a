import {
  type BrotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
  type Inflate,
  type InflateRaw,
} from 'node:zlib';

export const NO_BYTES = Buffer.alloc(0);

/** Bytes that arrive in pieces, up to a limit. */
export class BoundedBuffer {
  readonly #limit: number;
  #buffer: Buffer = NO_BYTES;
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /** False when the limit is exceeded; nothing is added then. */
  append(chunk: Buffer): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#limit) return false;
    if (this.#length === 0) {
      this.#buffer = chunk;
    } else {
      // Copied into one buffer: a list of one-byte chunks would cost a hundred times their bytes.
      if (length > this.#buffer.length) this.#grow(length);
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = length;
    return true;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.min(this.#limit, Math.max(needed, 2 * this.#buffer.length, 4096)));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}

export type Compression = 'gzip' | 'deflate' | 'br';
export type Coding = 'identity' | Compression;
export type Decoder = Gunzip | Inflate | InflateRaw | BrotliDecompress;

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
  if (header === undefined) return 'identity';
  return CODINGS.get(String(header).trim().toLowerCase());
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

export function createDecoder(coding: Compression, coded: Buffer): Decoder {
  if (coding === 'gzip') return createGunzip();
  if (coding === 'br') return createBrotliDecompress();
  return hasZlibHeader(coded) ? createInflate() : createInflateRaw();
}

/**
 * "deflate" is the zlib format (RFC 9110, section 8.4.1.2), but some servers send the bare deflate stream. A zlib header
 * has the method 8 and is a multiple of 31 (RFC 1950, section 2.2).
 */
function hasZlibHeader(coded: Buffer): boolean {
  return coded.length >= 2 && ((coded[0] ?? 0) & 0x0f) === 8 && coded.readUInt16BE(0) % 31 === 0;
}

/**
 * Whether the coded bytes were one stream and nothing else. Clients disagree about what follows the first stream, and
 * what two clients read differently must not be signed. A second gzip member shows in the length at the end of the data, which
 * counts the last member alone (RFC 1952, section 2.3.1).
 */
export function isWholeStream(coding: Compression, coded: Buffer, consumed: number, length: number): boolean {
  if (consumed !== coded.length) return false;
  return coding !== 'gzip' || coded.readUInt32LE(coded.length - 4) === length % 2 ** 32;
}
