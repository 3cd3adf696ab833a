import { isRecord } from '../../../plugins-sdk/schema/path.ts';
import { LONGEST_FRAME, type Report, TOKEN_BYTES } from './protocol.ts';

/** A frame for the process of a plugin. */
export function orderFrame(json: string, text = ''): Buffer {
  const middle = Buffer.byteLength(json);
  const length = 4 + middle + Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(4 + length);
  frame.writeUInt32LE(length, 0);
  frame.writeUInt32LE(middle, 4);
  frame.write(json, 8);
  frame.write(text, 8 + middle);
  return frame;
}

/** Bytes of a frame's length and token. */
const HEAD = 4 + TOKEN_BYTES;

/** Reads the frames of a process, which may hold whatever its plugin has written. */
export class ReportReader {
  readonly #token: Buffer;
  /** The beginning of a frame, in the pieces in which it came: put together once only, since they may be of a byte each. */
  #pieces: Buffer[] = [];
  #length = 0;
  #needed = 4;

  constructor(token: Buffer) {
    this.#token = token;
  }

  /** @throws Error that says what is wrong; nothing that comes later can be trusted. */
  read(chunk: Buffer, take: (report: Report) => void): void {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return;
    let bytes = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces);
    this.#needed = this.#bytesNeeded(bytes);
    while (bytes.length >= this.#needed) {
      take(reportOf(bytes.subarray(HEAD, this.#needed)));
      bytes = bytes.subarray(this.#needed);
      this.#needed = this.#bytesNeeded(bytes);
    }
    this.#pieces = bytes.length === 0 ? [] : [bytes];
    this.#length = bytes.length;
  }

  /** Bytes until more can be told of a frame; more than there are, unless it is there. */
  #bytesNeeded(bytes: Buffer): number {
    if (bytes.length < 4) return 4;
    const length = bytes.readUInt32LE(0);
    if (length > LONGEST_FRAME) throw new Error('it sent a frame of more than 4 MiB');
    const token = bytes.subarray(4, HEAD);
    if (length < TOKEN_BYTES || !token.equals(this.#token.subarray(0, token.length)))
      throw new Error('it sent a forged frame');
    return bytes.length < HEAD ? HEAD : 4 + length;
  }
}

function reportOf(frame: Buffer): Report {
  const report: unknown = JSON.parse(frame.toString('utf8'));
  if (!isRecord(report) || typeof report.k !== 'string') throw new Error('it sent a frame that makes no sense');
  // Only the process's own code knows the token.
  return report as Report;
}
