import type { Steps } from './turns.ts';

/** Keys up to which one call of `sort` is quick. */
const FEW = 256;
/** Keys between two turns of other work. */
const STEP = 16_384;

/** Sorts distinct texts by UTF-16 code units, as `sort` does, and can stop in between. */
export function* sorted(texts: readonly string[]): Steps<string[]> {
  const order: string[] = [];
  // Runs that are alike before a place; the last one comes first.
  const runs = [{ texts, place: 0 }];
  let unyielded = 0;
  for (let run = runs.pop(); run !== undefined; run = runs.pop()) {
    unyielded += run.texts.length;
    if (unyielded >= STEP) {
      unyielded = 0;
      yield;
    }
    const { place } = run;
    if (run.texts.length <= FEW) {
      for (const text of run.texts.toSorted()) order.push(text);
      continue;
    }
    const buckets = new Map<number, string[]>();
    for (const text of run.texts) {
      // A text that ends here comes first.
      const unit = place < text.length ? text.charCodeAt(place) : -1;
      const bucket = buckets.get(unit);
      if (bucket === undefined) buckets.set(unit, [text]);
      else bucket.push(text);
    }
    const units = Int32Array.from(buckets.keys()).sort().reverse();
    for (const unit of units) runs.push({ texts: buckets.get(unit) ?? [], place: place + 1 });
  }
  return order;
}
