import { type JsonText, trustedJson } from '../json-text.ts';
import type { ApiResponse, Json } from '../kernel.ts';
import { deepFreeze } from '../public-hooks.ts';
import { canonicalize } from './canonicalize.ts';
import { type LongContainers, parse, validate } from './parse.ts';
import { inTurns } from './turns.ts';

/**
 * An upstream's answer whose JSON text is too long to be handled in one turn of the event loop. What is made of it is made
 * when it is asked for, and once.
 */
export class LongResponse implements ApiResponse {
  readonly status: number;
  readonly #bytes: Buffer;
  readonly #long: LongContainers;
  #text: string | undefined;
  #parsed: Promise<Json> | undefined;
  #data: Json | undefined;

  private constructor(status: number, bytes: Buffer, long: LongContainers) {
    this.status = status;
    this.#bytes = bytes;
    this.#long = long;
  }

  static is(value: unknown): value is LongResponse {
    return typeof value === 'object' && value !== null && #bytes in value;
  }

  /**
   * @param bytes well-formed UTF-8 without a byte order mark, at most 1 MiB
   * @throws SyntaxError unless they are JSON; JsonLimitError beyond 256 levels and for a number too large for a double
   */
  static async read(status: number, bytes: Buffer): Promise<LongResponse> {
    return new LongResponse(status, bytes, await inTurns(validate(bytes)));
  }

  get text(): string {
    this.#text ??= this.#bytes.toString();
    return this.#text;
  }

  /** Made in one turn, unless {@link parsed} has made it. */
  get data(): Json {
    this.#data ??= JSON.parse(this.text) as Json;
    return deepFreeze(this.#data);
  }

  /** `data`, made with turns for other work in between. */
  parsed(): Promise<Json> {
    this.#parsed ??= inTurns(parse(this.#bytes, this.#long)).then((data) => {
      this.#data = data;
      return data;
    });
    return this.#parsed;
  }

  /** The canonical JSON of `data`, as text and as bytes. */
  async canonical(): Promise<{ readonly text: JsonText; readonly bytes: Uint8Array }> {
    const bytes = await inTurns(canonicalize(this.#bytes));
    return { text: trustedJson(bytes.toString()), bytes };
  }
}
