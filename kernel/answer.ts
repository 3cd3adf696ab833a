import type { Hex } from './exchange.ts';
import { JsonText, trustedJson } from './json-text.ts';
import { isRecord } from './plain-json.ts';

/** What `encode` makes of an upstream answer. */
export interface Encoded {
  /** What gets signed. */
  readonly bytes: Hex;
  /** The response field that shows it. */
  readonly field: string;
  /** What the field holds: any JSON. Where that is `bytes` itself, later stages may still replace both. */
  readonly value: unknown;
}

export interface Signed {
  readonly node: Hex;
  readonly signature: Hex;
}

export interface AnswerParts extends Signed {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly field: string;
  readonly value: JsonText;
  readonly proof?: Readonly<Record<string, unknown>> | undefined;
}

const MEMBERS: Readonly<Record<string, (member: unknown) => boolean>> = {
  node: isHex,
  endpointId: isHex,
  timestamp: Number.isSafeInteger,
  signature: isHex,
};

function isHex(value: unknown): boolean {
  return typeof value === 'string' && /^0x(?:[0-9a-fA-F]{2})+$/.test(value);
}

/** A signed answer as JSON. It is serialised once, however often it is sent. */
export class Answer extends JsonText {
  readonly #answer = true;

  private constructor(json: string) {
    super(json);
    Object.freeze(this);
  }

  static override is(value: unknown): value is Answer {
    return typeof value === 'object' && value !== null && #answer in value;
  }

  static of({ node, endpointId, timestamp, field, value, signature, proof }: AnswerParts): Answer {
    const tail = proof === undefined ? '' : `,"proof":${JSON.stringify(proof)}`;
    return new Answer(
      `{"node":"${node}","endpointId":"${endpointId}","timestamp":${timestamp},` +
        `${JSON.stringify(field)}:${value.json},"signature":"${signature}"${tail}}`,
    );
  }

  /**
   * An answer that was kept as text elsewhere.
   * @throws Error unless it is JSON with the members that every answer has.
   */
  static override parse(json: string): Answer {
    const members: unknown = JSON.parse(json);
    if (!isRecord(members)) throw new TypeError('an answer is a JSON object');
    for (const [name, isSound] of Object.entries(MEMBERS)) {
      if (!isSound(members[name])) throw new TypeError(`an answer without a ${name}`);
    }
    // `with` needs the brace in front, a stream needs one line, and a line feed in JSON is nothing but space.
    return new Answer(json.trim().replace(/[\r\n]/g, ' '));
  }

  /** The same JSON object with other members in front. */
  with(members: Readonly<Record<string, unknown>>): JsonText {
    return trustedJson(`${JSON.stringify(members).slice(0, -1)},${this.json.slice(1)}`);
  }
}
