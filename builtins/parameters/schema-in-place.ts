import { typesIn } from '../../lib/json/value.ts';
import type { Json } from '../../plugins-sdk/index.ts';
import type { Declared } from './placement.ts';

type Schema = Readonly<Record<string, Json>>;

const SCALAR = ['string', 'number', 'boolean'];

/**
 * Returns the schema of a parameter's value in its place. Outside a JSON body it takes scalars, and lists if there is a style,
 * unless the schema names types itself: a pattern alone would accept any list, and its text would be sent.
 */
export function schemaInPlace({ in: place, style, form }: Partial<Declared>, schema: Schema = {}): Schema {
  if ((place === 'body' && !form) || typesIn(schema).length > 0) return schema;
  return { type: style === undefined ? SCALAR : [...SCALAR, 'array'], ...schema };
}
