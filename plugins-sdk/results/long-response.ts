import { partsOf } from '../../lib/json/parts.ts';
import type { Steps } from '../../lib/json/turns.ts';
import { deepFreeze } from '../../lib/objects/deep-freeze.ts';
import type { ApiResponse, Json, OutgoingRequest } from '../kernel.ts';

/** An upstream's answer as bytes: its text and its data are made when they are asked for, and once. */
export class LongResponse implements ApiResponse {
  readonly status: number;
  readonly request: OutgoingRequest | undefined;
  readonly #bytes: Buffer;
  #text: string | undefined;
  #data: Json | undefined;

  private constructor(status: number, bytes: Buffer, request: OutgoingRequest | undefined) {
    this.status = status;
    this.request = request;
    this.#bytes = bytes;
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
    yield* partsOf(bytes);
    return new LongResponse(status, bytes, request);
  }

  /** Of its JSON text; not to be written to. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  get text(): string {
    this.#text ??= this.#bytes.toString();
    return this.#text;
  }

  /** Frozen, for plugins; {@link value} is as quick as JSON.parse. */
  get data(): Json {
    return deepFreeze(this.value);
  }

  get value(): Json {
    this.#data ??= JSON.parse(this.text) as Json;
    return this.#data;
  }
}

const { data, text } = Object.getOwnPropertyDescriptors(LongResponse.prototype);
/** Members of each answer, for plugins that spread one. */
const OWN = { data: { ...data, enumerable: true }, text: { ...text, enumerable: true } };
