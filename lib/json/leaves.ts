/** A scalar value in an answer, and an encoding that suits it. */
export interface Leaf {
  readonly path: string;
  readonly value: string | number | boolean | null;
  readonly type: string;
  /** Multiplier that keeps every digit; for integer types alone. */
  readonly times?: string;
}

/** Items of each list that are visited. */
const ITEMS = 3;
const MAX_DEPTH = 32;

/**
 * Returns the first `most` scalar values of an answer, each with its path.
 *
 * @param written returns the JSON of a value as the upstream wrote it: a double may have lost digits on which the type depends.
 */
export function leavesOf(data: unknown, most: number, written: (json: string) => string): Leaf[] {
  const found: Leaf[] = [];
  const visit = (value: unknown, path: string, depth: number): void => {
    if (found.length === most || depth > MAX_DEPTH) return;
    if (Array.isArray(value))
      for (const [i, item] of value.slice(0, ITEMS).entries()) visit(item, `${path}[${i}]`, depth + 1);
    else if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value)) visit(member, `${path}${pathStep(key)}`, depth + 1);
    else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      found.push({ path, value, ...typeOf(written(JSON.stringify(value))) });
  };
  visit(data, '$', 0);
  return found;
}

/** Returns the part of a path that leads to a member of an object. */
export function pathStep(key: string): string {
  return /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `['${key.replace(/[\\']/g, '\\$&')}']`;
}

/** Suggests an encoding. @param json the JSON of a scalar value. */
function typeOf(json: string): Pick<Leaf, 'type' | 'times'> {
  const value: unknown = JSON.parse(json);
  const text = String(value);
  if (typeof value === 'boolean') return { type: 'bool' };
  const isCut = typeof value === 'number' && /\.\d*[1-9]/.test(json);
  if (!isCut && /^-?\d{1,60}$/.test(text)) return { type: 'int256' };
  if (typeof value === 'number' || /^-?\d{1,60}\.\d{1,60}$/.test(text)) return { type: 'int256', times: '1e18' };
  if (/^0x[0-9a-fA-F]{40}$/.test(text)) return { type: 'address' };
  return { type: /^0x[0-9a-fA-F]{64}$/.test(text) ? 'bytes32' : 'string' };
}
