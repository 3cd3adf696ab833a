import { canonicalJson } from './canonical-json.ts';

let trust: (text: string) => JsonText;

/** Text that is known to be JSON, since it was written as such. It never changes. */
export class JsonText {
  readonly json: string;
  /** Nobody can pass for one: the guard looks for this. */
  readonly #checked = true;

  protected constructor(json: string) {
    this.json = json;
    if (new.target === JsonText) Object.freeze(this);
  }

  static {
    trust = (text) => new JsonText(text);
  }

  static is(value: unknown): value is JsonText {
    return typeof value === 'object' && value !== null && #checked in value;
  }

  /** @throws TypeError for what has no JSON form: a function, a symbol, `undefined`, a cycle, a bigint. */
  static stringify(value: unknown): JsonText {
    // Typed as text, but it is `undefined` for some values.
    const text: unknown = JSON.stringify(value);
    if (typeof text !== 'string') throw new TypeError('has no JSON form');
    return new JsonText(text);
  }
}

/** For text that has just been written as JSON: it is not looked at again. */
export function trustedJson(text: string): JsonText {
  return trust(text);
}

/** {@link canonicalJson} as what `encode` may show: text that need not be looked at again. @throws CanonicalJsonError */
export function canonicalText(value: unknown): JsonText {
  return trust(canonicalJson(value));
}
