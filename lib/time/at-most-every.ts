/** Returns a throttled `work`: calls within so many milliseconds of the last one that was carried out do nothing. */
export function atMostEvery<A extends readonly unknown[]>(milliseconds: number, work: (...args: A) => void) {
  let last = Number.NEGATIVE_INFINITY;
  return (...args: A): void => {
    if (performance.now() - last < milliseconds) return;
    last = performance.now();
    work(...args);
  };
}
