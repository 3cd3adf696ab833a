import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { type JsonText, trustedJson } from '../../lib/json/json-text.ts';
import { type LongContainer, partsOf } from '../../lib/json/parts.ts';
import { PartsReader } from '../../lib/json/read.ts';
import { inTurns, type Steps } from '../../lib/json/turns.ts';
import { deepFreeze } from '../../lib/objects/deep-freeze.ts';
import type { ApiResponse, Json, OutgoingRequest } from '../kernel.ts';

/**
 * An upstream's answer, whose JSON text may be too long to be handled in one turn of the event loop. What is made of it is
 * made when it is asked for, and once.
 */
export class LongResponse implements ApiResponse {
  readonly status: number;
  readonly request: OutgoingRequest | undefined;
  readonly #bytes: Buffer;
  /** Nothing where JSON.parse is quick, as with a long text in few values. */
  readonly #root: LongContainer | undefined;
  #text: string | undefined;
  #parsed: Promise<Json> | undefined;
  #data: Json | undefined;

  private constructor(
    status: number,
    bytes: Buffer,
    root: LongContainer | undefined,
    request: OutgoingRequest | undefined,
  ) {
    this.status = status;
    this.request = request;
    this.#bytes = bytes;
    this.#root = root;
    Object.freeze(Object.defineProperties(this, OWN));
  }

  static is(value: unknown): value is LongResponse {
    return typeof value === 'object' && value !== null && #bytes in value;
  }

  /**
   * @param bytes well-formed UTF-8 without a byte order mark, at most 1 MiB
   * @param request that was sent for it, where it was
   * @throws SyntaxError unless they are JSON; JsonLimitError beyond 256 levels and for a number too large for a double
   */
  static *read(status: number, bytes: Buffer, request?: OutgoingRequest): Steps<LongResponse> {
    return new LongResponse(status, bytes, yield* partsOf(bytes), request);
  }

  /** Of its JSON text; not to be written to. */
  get bytes(): Buffer {
    return this.#bytes;
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
    this.#parsed ??= inTurns(this.#parse());
    return this.#parsed;
  }

  *#parse(): Steps<Json> {
    const data = this.#root && (yield* new PartsReader(this.#bytes).value(this.#root));
    this.#data ??= data ?? (JSON.parse(this.text) as Json);
    return this.#data;
  }

  /** The canonical JSON of `data`, as text and as bytes. */
  async canonical(): Promise<{ readonly text: JsonText; readonly bytes: Uint8Array }> {
    const text = this.#root
      ? await inTurns(new PartsReader(this.#bytes).canonical(this.#root))
      : canonicalJson(JSON.parse(this.text));
    return { text: trustedJson(text), bytes: Buffer.from(text) };
  }
}

const { data, text } = Object.getOwnPropertyDescriptors(LongResponse.prototype);
/** Members of each answer, for plugins that spread one. */
const OWN = { data: { ...data, enumerable: true }, text: { ...text, enumerable: true } };
