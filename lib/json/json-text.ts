import { canonicalJson } from './canonical-json.ts';

/** Wraps text that the caller has just written as JSON, without checking it. */
export let trustedJson: (text: string) => JsonText;

/** Immutable text that is known to be JSON, because it was written as JSON. */
export class JsonText {
  readonly json: string;
  /** A private field cannot be forged: the guard checks for it. */
  readonly #checked = true;

  protected constructor(json: string) {
    this.json = json;
    if (new.target === JsonText) Object.freeze(this);
  }

  static {
    trustedJson = (text) => new JsonText(text);
  }

  static is(value: unknown): value is JsonText {
    return typeof value === 'object' && value !== null && #checked in value;
  }

  /** Writes a value as JSON. @throws TypeError for a value without a JSON form: function, symbol, `undefined`, cycle, bigint. */
  static stringify(value: unknown): JsonText {
    // The result is typed as a string but is `undefined` for some values.
    const text: unknown = JSON.stringify(value);
    if (typeof text !== 'string') throw new TypeError('has no JSON form');
    return new JsonText(text);
  }
}

/** Returns {@link canonicalJson} as a {@link JsonText}, which `encode` may return unchecked. @throws CanonicalJsonError */
export function canonicalText(value: unknown): JsonText {
  return trustedJson(canonicalJson(value));
}
