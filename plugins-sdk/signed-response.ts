import type { SignedResponse as Response, SignedParts } from '../kernel/values.ts';
import { isHex } from '../lib/eth/hex.ts';
import { JsonText, trustedJson } from '../lib/json/json-text.ts';
import { isRecord } from '../lib/json/value.ts';

const isBytes = (member: unknown) => isHex(member) && member !== '0x';

const MEMBERS: Readonly<Record<string, (member: unknown) => boolean>> = {
  node: isBytes,
  endpointId: isBytes,
  timestamp: Number.isSafeInteger,
  signature: isBytes,
};

/** A signed answer, serialised once to the JSON that clients get. */
export type SignedResponse = Response;

/** What an answer shows; where its data is a hash, it shows that of which it is the hash. */
type Shown = Omit<SignedParts, 'data'>;

class SignedJson extends JsonText implements Response {
  #note: unknown;

  constructor(json: string) {
    super(json);
    Object.freeze(this);
  }

  static override is(value: unknown): value is SignedJson {
    return typeof value === 'object' && value !== null && #note in value;
  }

  static noteOf(answer: SignedResponse): unknown {
    return SignedJson.is(answer) ? answer.#note : undefined;
  }

  static note(answer: SignedResponse, note: object): void {
    if (SignedJson.is(answer)) answer.#note = note;
  }

  with(members: Readonly<Record<string, unknown>>): JsonText {
    const added: unknown = JSON.stringify(members);
    if (typeof added !== 'string' || !added.startsWith('{')) throw new TypeError('members are an object');
    // `undefined` has no JSON form.
    return trustedJson(added === '{}' ? this.json : `${added.slice(0, -1)},${this.json.slice(1)}`);
  }
}

/** What the service knows of an answer. A field of its own, since an entry of a `WeakMap` costs each garbage collection. */
export const { noteOf, note } = SignedJson;

export const SignedResponse = {
  /** Whether it was made here: nothing else can pass for one. */
  is(value: unknown): value is SignedResponse {
    return SignedJson.is(value);
  },

  /** @throws TypeError where two members would have one name. */
  of({ node, endpointId, timestamp, field, value, signature, beside, proof }: Shown): SignedResponse {
    if (Object.hasOwn(beside ?? {}, field)) throw new TypeError(`two members of an answer are named ${field}`);
    const shown = JsonText.is(value) ? value : JsonText.stringify(value);
    const further = beside === undefined ? '' : `,${JSON.stringify(beside).slice(1, -1)}`;
    const tail = proof === undefined ? further : `${further},"proof":${JSON.stringify(proof)}`;
    return new SignedJson(
      `{"node":"${node}","endpointId":"${endpointId}","timestamp":${timestamp},` +
        `${JSON.stringify(field)}:${shown.json},"signature":"${signature}"${tail}}`,
    );
  },

  /**
   * An answer that was kept as text elsewhere.
   * @throws Error unless it is JSON with the members that every answer has.
   */
  parse(json: string): SignedResponse {
    const members: unknown = JSON.parse(json);
    if (!isRecord(members)) throw new TypeError('an answer is a JSON object');
    for (const [name, isSound] of Object.entries(MEMBERS)) {
      if (!isSound(members[name])) throw new TypeError(`an answer without a ${name}`);
    }
    // `with` needs the brace in front, a stream needs one line, and a line feed in JSON is nothing but space.
    return new SignedJson(json.trim().replace(/[\r\n]/g, ' '));
  },
};
