import type { Duplex } from 'node:stream';
import type { Order } from './protocol.ts';

/** Writes to the process of a plugin. Frames of one turn of the event loop go together. */
export class OrderWriter {
  readonly #stream: Duplex | undefined;
  #waiting: Buffer[] = [];
  /** Bytes of frames that wait. */
  #length = 0;

  /** @param stream is nothing where the service has no descriptor left. @param token goes before all frames. */
  constructor(stream: Duplex | undefined, token: Buffer) {
    this.#stream = stream;
    stream?.write(token);
  }

  /** Bytes that the process has not taken yet. */
  get unsent(): number {
    return this.#length + (this.#stream?.writableLength ?? 0);
  }

  order(order: Order): void {
    this.send(JSON.stringify(order));
  }

  /** @param json of an order. @param text that belongs to it. */
  send(json: string, text?: string): void {
    const frame = frameOf(json, text);
    this.#length += frame.length;
    if (this.#waiting.push(frame) === 1) setImmediate(() => this.flush());
  }

  flush(): void {
    const frames = this.#waiting;
    this.#waiting = [];
    this.#length = 0;
    if (frames.length > 0 && this.#stream?.writable) this.#stream.write(Buffer.concat(frames));
  }
}

function frameOf(json: string, text = ''): Buffer {
  const middle = Buffer.byteLength(json);
  const length = 4 + middle + Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(4 + length);
  frame.writeUInt32LE(length, 0);
  frame.writeUInt32LE(middle, 4);
  frame.write(json, 8);
  frame.write(text, 8 + middle);
  return frame;
}
