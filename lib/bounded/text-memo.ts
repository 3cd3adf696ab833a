/** When this many texts are remembered, the next new one first empties the memo. */
const MOST_TEXTS = 1000;
/** A longer text is never remembered. */
const MOST_CHARACTERS = 512;

/** Remembers the results of a function of short texts, in bounded memory. */
export class TextMemo<T> {
  readonly #results = new Map<string, T>();

  /**
   * Returns the remembered result for a text, or computes it.
   * @param work computes the result, which later callers share. An error that it throws is not remembered.
   */
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
