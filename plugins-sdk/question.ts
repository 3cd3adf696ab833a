import type { Hex } from '../lib/eth/hex.ts';
import type { OutgoingRequest, Parameters, Question } from './kernel.ts';

/** What a question is made of. */
export interface QuestionParts extends Pick<Question, 'parameters' | 'reserved' | 'request'> {
  /** What a receipt of the answer signs; only on endpoints whose answers carry one. */
  readonly requestHash: Hex | undefined;
  /** Makes the key; asked once, by the first who wants it. */
  key(): string;
  /** The outgoing request with other parameters. @throws Refusal 400 */
  requestFor(parameters: Parameters): OutgoingRequest;
}

/** The only question that the service accepts: immutable, with its key and hash. */
export class AskedQuestion implements Question {
  readonly parameters: Parameters;
  readonly reserved: Parameters;
  readonly request: OutgoingRequest;
  readonly requestHash: Hex | undefined;
  readonly #parts: QuestionParts;
  readonly #first: AskedQuestion;
  #key: string | undefined;

  constructor(parts: QuestionParts, first?: AskedQuestion) {
    this.parameters = parts.parameters;
    this.reserved = parts.reserved;
    this.request = parts.request;
    this.requestHash = parts.requestHash;
    this.#parts = parts;
    this.#first = first ?? this;
    Object.freeze(this);
  }

  static is(value: unknown): value is AskedQuestion {
    return typeof value === 'object' && value !== null && #parts in value;
  }

  /** Whether both are what one client asks. */
  static isSame(one: AskedQuestion, other: AskedQuestion): boolean {
    return one.#first === other.#first;
  }

  get key(): string {
    const first = this.#first;
    first.#key ??= first.#parts.key();
    return first.#key;
  }

  with(parameters: Parameters): Question {
    const request = this.#parts.requestFor(parameters);
    return new AskedQuestion({ ...this.#parts, parameters, request }, this.#first);
  }
}
