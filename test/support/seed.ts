/**
 * The seed of an attack suite: `SEED` repeats a run, otherwise each run has its own. It is printed, since a failure
 * that cannot be repeated cannot be mended.
 */
export const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
if (!Number.isInteger(seed)) throw new Error('SEED must be an integer');
process.stdout.write(`SEED=${seed}\n`);

/** Numbers in [0, 1) that follow from the seed (mulberry32): fast enough to choose bytes with. */
export function randomFrom(start: number): () => number {
  let state = start | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
