import type {
  OutgoingRequest,
  Parameters,
  Question,
  SignedResponse as Response,
  SignedParts,
} from '../kernel/values.ts';
import { type Hex, isHex } from '../lib/eth/hex.ts';
import { JsonText, trustedJson } from '../lib/json/json-text.ts';
import { isRecord } from '../lib/json/value.ts';

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

const isBytes = (member: unknown) => isHex(member) && member !== '0x';

const MEMBERS: Readonly<Record<string, (member: unknown) => boolean>> = {
  node: isBytes,
  endpointId: isBytes,
  timestamp: Number.isSafeInteger,
  signature: isBytes,
};

/** A signed answer, serialised once to the JSON that clients get. */
export type SignedResponse = Response;

/** The parts that an answer shows: its `value` is the signed `data` or, if that is a hash, what it is the hash of. */
type Shown = Omit<SignedParts, 'data'>;

class SignedJson extends JsonText implements Response {
  #note: unknown;

  constructor(json: string) {
    super(json);
    Object.freeze(this);
  }

  /** Returns whether a value was made by this class. No other value passes. */
  static override is(value: unknown): value is SignedJson {
    return typeof value === 'object' && value !== null && #note in value;
  }

  static noteOf(answer: SignedResponse): unknown {
    return SignedJson.is(answer) ? answer.#note : undefined;
  }

  static note(answer: SignedResponse, note: object): void {
    if (SignedJson.is(answer)) answer.#note = note;
  }

  /** Serialises an answer's parts. @throws TypeError if two members would have one name. */
  static of({ node, endpointId, timestamp, field, value, signature, extra, proof }: Shown): SignedResponse {
    if (Object.hasOwn(extra ?? {}, field)) throw new TypeError(`two members of an answer are named ${field}`);
    const shown = JsonText.is(value) ? value : JsonText.stringify(value);
    const members = extra === undefined ? '' : JSON.stringify(extra).slice(1, -1);
    const further = members === '' ? '' : `,${members}`;
    const tail = proof === undefined ? further : `${further},"proof":${JSON.stringify(proof)}`;
    return new SignedJson(
      `{"node":"${node}","endpointId":"${endpointId}","timestamp":${timestamp},` +
        `${JSON.stringify(field)}:${shown.json},"signature":"${signature}"${tail}}`,
    );
  }

  /**
   * Reads an answer that was kept as text elsewhere. It does not check signatures.
   * @throws Error unless the text is JSON with the members that every answer has.
   */
  static parse(json: string): SignedResponse {
    const members: unknown = JSON.parse(json);
    if (!isRecord(members)) throw new TypeError('an answer is a JSON object');
    for (const [name, isSound] of Object.entries(MEMBERS)) {
      if (!isSound(members[name])) throw new TypeError(`an answer without a ${name}`);
    }
    // `with` needs the brace in front, and a stream needs one line. A line feed in JSON is only white space.
    return new SignedJson(json.trim().replace(/[\r\n]/g, ' '));
  }

  with(members: Readonly<Record<string, unknown>>): JsonText {
    const added: unknown = JSON.stringify(members);
    if (typeof added !== 'string' || !added.startsWith('{')) throw new TypeError('members are an object');
    // `undefined` has no JSON form.
    return trustedJson(added === '{}' ? this.json : `${added.slice(0, -1)},${this.json.slice(1)}`);
  }
}

/** Read and write the service's facts of an answer. They are in a private field: a `WeakMap` costs more. */
export const { noteOf, note } = SignedJson;

/** Makes, reads and recognizes signed answers. */
export const SignedResponse = { is: SignedJson.is, of: SignedJson.of, parse: SignedJson.parse };
