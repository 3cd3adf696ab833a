/**
 * The types of an encoding, each with what its values are multiplied by: `int256 × 1e18` and `bool` for `int256,bool` and
 * `1e18,`. Only integers are multiplied.
 *
 * @param types comma-separated.
 * @param times as many factors, comma-separated, of which some may be empty, or one for all.
 */
export function withFactors(types: string, times = ''): string[] {
  const factors = times.split(',').map((factor) => factor.trim());
  return types.split(',').map((listed, i) => {
    const type = listed.trim();
    const factor = factors.length === 1 ? factors[0] : factors[i];
    return factor && /^(?:u?int|_type$)/.test(type) ? `${type} × ${factor}` : type;
  });
}
