import type { OutgoingRequest, Parameters, Question } from '../kernel/values.ts';
import type { Hex } from '../lib/eth/hex.ts';

/** The parts that a question is made from. */
export interface QuestionParts extends Pick<Question, 'parameters' | 'reserved' | 'request'> {
  /** The hash of the request, which the answer's receipt signs; only on endpoints with receipts. */
  readonly requestHash: Hex | undefined;
  /** Makes the key; called once, on first use. */
  key(): string;
  /** Returns the outgoing request for other parameters. @throws Refusal 400 */
  requestFor(parameters: Parameters): OutgoingRequest;
}

/** The only kind of question that the service accepts: immutable, with its key and hash. */
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

  /** Returns whether both stem from one question of a client. */
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
