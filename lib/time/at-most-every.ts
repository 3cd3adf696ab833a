/** The same function, without effect within so many milliseconds of its last call that had one. */
export function atMostEvery<A extends readonly unknown[]>(milliseconds: number, work: (...args: A) => void) {
  let last = Number.NEGATIVE_INFINITY;
  return (...args: A): void => {
    if (performance.now() - last < milliseconds) return;
    last = performance.now();
    work(...args);
  };
}
