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

/** Reads the frames of a process, which may hold whatever its plugin has written. */
export class ReportReader {
  readonly #token: Buffer;
  #rest: Buffer = Buffer.alloc(0);

  constructor(token: Buffer) {
    this.#token = token;
  }

  /** @throws Error that says what is wrong; nothing that comes later can be trusted. */
  read(chunk: Buffer, take: (report: Report) => void): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= 4) {
      const length = bytes.readUInt32LE(0);
      if (length > LONGEST_FRAME) throw new Error('it sent a frame of more than 4 MiB');
      if (bytes.length < 4 + length) break;
      take(this.#reportOf(bytes.subarray(4, 4 + length)));
      bytes = bytes.subarray(4 + length);
    }
    this.#rest = bytes;
  }

  #reportOf(frame: Buffer): Report {
    if (!frame.subarray(0, TOKEN_BYTES).equals(this.#token)) throw new Error('it sent a forged frame');
    const report: unknown = JSON.parse(frame.toString('utf8', TOKEN_BYTES));
    if (!isRecord(report) || typeof report.k !== 'string') throw new Error('it sent a frame that makes no sense');
    // Only the process's own code knows the token.
    return report as Report;
  }
}
