import { isRecord } from '../../lib/json/value.ts';
import type { Json } from '../../plugins-sdk/index.ts';
import type { Declared } from './placement.ts';

type Schema = Readonly<Record<string, Json>>;

const SCALAR = ['string', 'number', 'boolean'];

/** Whether a schema says which types it takes, at its top or in one of its alternatives. */
function saysType(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  const inner = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return schema.type !== undefined || inner.some(saysType);
}

/**
 * What a parameter's value must be where it is sent. Outside a body of JSON that is a scalar, or a list with a style, unless the
 * schema names types: a pattern says nothing of a list, whose text would be sent.
 */
export function schemaInPlace({ in: place, style, form }: Partial<Declared>, schema: Schema = {}): Schema {
  if ((place === 'body' && !form) || saysType(schema)) return schema;
  return { type: style === undefined ? SCALAR : [...SCALAR, 'array'], ...schema };
}
