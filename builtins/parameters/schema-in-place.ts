import { isRecord } from '../../lib/json/value.ts';
import type { Json } from '../../plugins-sdk/index.ts';
import type { Declared } from './placement.ts';

type Schema = Readonly<Record<string, Json>>;

const SCALAR = ['string', 'number', 'boolean'];

/** Whether a schema names the types that it takes, at its top or in one of its alternatives. */
function saysType(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  const inner = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return schema.type !== undefined || inner.some(saysType);
}

/**
 * Returns the schema of a parameter's value in its place. Outside a JSON body it takes scalars, and lists if there is a style,
 * unless the schema names types itself: a pattern alone would accept any list, and its text would be sent.
 */
export function schemaInPlace({ in: place, style, form }: Partial<Declared>, schema: Schema = {}): Schema {
  if ((place === 'body' && !form) || saysType(schema)) return schema;
  return { type: style === undefined ? SCALAR : [...SCALAR, 'array'], ...schema };
}
