/** A type of an encoding, and the factor that its values are multiplied by. */
export interface Scaled {
  readonly type: string;
  readonly factor?: string;
}

/**
 * Returns the types of an encoding, each with its factor: only integers are multiplied.
 *
 * @param types comma-separated types.
 * @param times one factor for all types, or a comma-separated list with a factor for each type, some of them empty.
 */
export function scaled(types: string, times = ''): Scaled[] {
  const factors = times.split(',').map((factor) => factor.trim());
  return types.split(',').map((listed, i) => {
    const type = listed.trim();
    const factor = factors.length === 1 ? factors[0] : factors[i];
    return factor && /^(?:u?int|_type$)/.test(type) ? { type, factor } : { type };
  });
}

/** Returns the types in words: `int256 × 1e18` and `bool` for `int256,bool` and `1e18,`. */
export function withFactors(types: string, times?: string): string[] {
  return scaled(types, times).map(({ type, factor }) => (factor === undefined ? type : `${type} × ${factor}`));
}
