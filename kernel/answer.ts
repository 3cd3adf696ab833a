import type { Hex } from './exchange.ts';

/** What `encode` makes of an upstream answer. */
export interface Encoded {
  /** What gets signed. */
  readonly bytes: Hex;
  /** The response field that shows it. */
  readonly field: string;
  /** What the field holds. Where that is `bytes` itself, later stages may still replace both. */
  readonly value: unknown;
  /** The JSON text of `value`, where it is already at hand. */
  readonly json?: string | undefined;
}

export interface Signed {
  readonly node: Hex;
  readonly signature: Hex;
}

export interface AnswerParts extends Signed {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly encoded: Encoded;
  readonly proof?: Readonly<Record<string, unknown>> | undefined;
}

/** A signed answer. It never changes, so it is serialised once, however often it is sent. */
export class Answer {
  readonly json: string;

  constructor(parts: AnswerParts) {
    const { node, endpointId, timestamp, encoded, signature, proof } = parts;
    const value = encoded.json ?? JSON.stringify(encoded.value);
    const tail = proof === undefined ? '' : `,"proof":${JSON.stringify(proof)}`;
    this.json =
      `{"node":"${node}","endpointId":"${endpointId}","timestamp":${timestamp},` +
      `${JSON.stringify(encoded.field)}:${value},"signature":"${signature}"${tail}}`;
  }

  /** The same JSON object with other members in front. */
  with(members: Readonly<Record<string, unknown>>): string {
    return `${JSON.stringify(members).slice(0, -1)},${this.json.slice(1)}`;
  }
}
