/** Texts that are remembered at most, and the characters of each: a longer one is worked out each time. */
const MOST_TEXTS = 1000;
const MOST_CHARACTERS = 512;

/** What short texts come to, worked out once as long as few others come in between. */
export class TextMemo<T> {
  readonly #results = new Map<string, T>();

  /** @param work makes the result, which others get as well; what it throws is not remembered. */
  of(text: string, work: (text: string) => T): T {
    if (text.length > MOST_CHARACTERS) return work(text);
    const known = this.#results.get(text);
    if (known !== undefined) return known;
    const result = work(text);
    if (this.#results.size === MOST_TEXTS) this.#results.clear();
    this.#results.set(text, result);
    return result;
  }
}
