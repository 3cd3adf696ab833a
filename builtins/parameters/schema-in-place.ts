import { isRecord } from '../../lib/json/value.ts';
import type { Parameter } from '../../plugins-sdk/config.ts';
import type { Json } from '../../plugins-sdk/index.ts';

type Schema = Readonly<Record<string, Json>>;

const SCALAR: Schema = { type: ['string', 'number', 'boolean'] };

/** Whether a schema says which types it takes, at its top or in one of its alternatives. */
function saysType(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  const inner = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return schema.type !== undefined || inner.some(saysType);
}

/**
 * What a parameter's value must be where it is sent. Outside a body that is a scalar, unless the schema names types: a pattern
 * says nothing of a list, whose text would be sent.
 */
export function schemaInPlace(place: Parameter['in'], schema: Schema = {}): Schema {
  return place === 'body' || saysType(schema) ? schema : { ...SCALAR, ...schema };
}
