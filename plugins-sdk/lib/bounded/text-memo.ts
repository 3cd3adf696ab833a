/** Texts that are remembered at most, and the characters of each: a longer one is worked out each time. */
const MOST_TEXTS = 1000;
const MOST_CHARACTERS = 512;

/** The same function of a text, which works the results of short ones out once, as long as few others come in between. */
export function rememberingTexts(work: (text: string) => string): (text: string) => string {
  const results = new Map<string, string>();
  return (text) => {
    if (text.length > MOST_CHARACTERS) return work(text);
    const known = results.get(text);
    if (known !== undefined) return known;
    const result = work(text);
    if (results.size === MOST_TEXTS) results.clear();
    results.set(text, result);
    return result;
  };
}
