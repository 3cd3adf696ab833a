import { LONGEST_FRAME, TOKEN_BYTES } from './protocol.ts';

/** Bytes of a frame's length and token. */
const HEAD = 4 + TOKEN_BYTES;

/** Splits what a process writes into frames. It may write whatever it likes, in pieces of a byte each. */
export class FrameSplitter {
  readonly #token: Buffer;
  /** The beginning of a frame: as long as the frame once its head is known to be good. */
  #begun = Buffer.alloc(HEAD);
  #length = 0;

  constructor(token: Buffer) {
    this.#token = token;
  }

  /** Whether a frame has begun and not ended. */
  get isWithin(): boolean {
    return this.#length > 0;
  }

  /**
   * The JSON of each frame that is complete.
   * @throws Error that says what is wrong; nothing that comes later can be trusted.
   */
  *split(chunk: Buffer): Generator<Buffer, void> {
    for (let at = 0; at < chunk.length; ) {
      const end =
        this.#length > 0 || chunk.length - at < HEAD ? Number.POSITIVE_INFINITY : at + this.#sizeOf(chunk, at);
      if (end <= chunk.length) {
        yield chunk.subarray(at + HEAD, end);
        at = end;
      } else {
        at += this.#collect(chunk, at);
        if (this.#length < this.#begun.length) continue;
        const frame = this.#begun;
        this.#begun = Buffer.alloc(HEAD);
        this.#length = 0;
        yield frame.subarray(HEAD);
      }
    }
  }

  /** @returns bytes that were taken. */
  #collect(chunk: Buffer, at: number): number {
    const taken = chunk.copy(this.#begun, this.#length, at);
    this.#length += taken;
    if (this.#begun.length > HEAD) return taken;
    const size = this.#sizeOf(this.#begun.subarray(0, this.#length), 0);
    if (this.#length < HEAD) return taken;
    // Memory that nothing is written to costs nothing.
    const frame = Buffer.allocUnsafe(size);
    this.#begun.copy(frame);
    this.#begun = frame;
    return taken;
  }

  /** Bytes of a frame, as far as they can be told. */
  #sizeOf(bytes: Buffer, at: number): number {
    if (bytes.length - at < 4) return 4;
    const length = bytes.readUInt32LE(at);
    if (length > LONGEST_FRAME) throw new Error('it sent a frame of more than 4 MiB');
    const token = bytes.subarray(at + 4, at + HEAD);
    if (length < TOKEN_BYTES || !token.equals(this.#token.subarray(0, token.length)))
      throw new Error('it sent a forged frame');
    return 4 + length;
  }
}
