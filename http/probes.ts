import type { ServerResponse } from 'node:http';

/** Looks for one response. Some clients fail at the sixth interim response, and node may send one of its own. */
const MOST = 4;

/**
 * Finds out whether a client is still there. One that sends no more may still read, or may be gone: its system says the same in both
 * cases, until it is sent something. An interim response harms nobody who reads (RFC 9110, section 15.2), and TCP must do where a few
 * told nothing.
 */
export class Probes {
  readonly #first: () => number | undefined;
  readonly #current: () => ServerResponse | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The response that is waited for, and the looks for it. */
  #probed: ServerResponse | undefined;
  #count = 0;

  /**
   * @param first milliseconds until the first look, while there is a need; each further one comes twice as late.
   * @param current the response that has the socket.
   */
  constructor(first: () => number | undefined, current: () => ServerResponse | undefined) {
    this.#first = first;
    this.#current = current;
  }

  /** Looks, as long as there is a need. */
  start(): void {
    const first = this.#first();
    if (this.#timer !== undefined || first === undefined) return;
    const current = this.#current();
    if (current !== this.#probed) this.#count = 0;
    this.#probed = current;
    if (this.#count < MOST) this.#timer = setTimeout(() => this.#look(), first * 2 ** this.#count);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    this.#timer = undefined;
    const current = this.#current();
    if (this.#first() !== undefined && current === this.#probed) {
      this.#count += 1;
      if (current?.headersSent === false && current.req.httpVersion === '1.1') current.writeContinue();
      // Nothing can be put into a stream, and it may say nothing for long: it ends with the client's side.
      if (current?.headersSent && !current.writableEnded && current.req.socket.readableEnded) current.destroy();
    }
    this.start();
  }
}
