import type { Definition } from '../../plugins-sdk/define.ts';
import { DURATION, DURATION_PATTERN } from '../../plugins-sdk/schema/duration.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { compose } from './compose.ts';

const VARIABLE = { $ref: '#/$defs/variable' };
const CONSTRAINTS = ['const', 'enum', 'pattern', 'format', 'maxLength'];

/**
 * Returns the JSON Schema (draft 2020-12) of a config file before interpolation, for editors. Where a number, a boolean or a
 * constrained text is expected, it also accepts a text with a `${VAR}` in it.
 */
export function composeSchema(definitions: readonly Definition[]): object {
  // The way through JSON text drops TypeBox's own marks and refinements.
  const plain: unknown = JSON.parse(JSON.stringify(compose(definitions).schema));
  const schema = asWritten(plain);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration of the signed-data proxy',
    ...(isRecord(schema) ? schema : {}),
    $defs: { variable: { type: 'string', pattern: '\\$\\{', description: 'Text with a variable of the environment' } },
  };
}

function asWritten(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(asWritten);
  if (!isRecord(schema)) return schema;
  const { description, ...rest } = schema;
  const about = description === undefined ? {} : { description };
  if (schema[DURATION] !== undefined) {
    const { [DURATION]: _, ...integer } = rest;
    return { ...about, anyOf: [integer, { type: 'string', pattern: DURATION_PATTERN }, VARIABLE] };
  }
  if (isConstrainedScalar(schema)) return { ...about, anyOf: [rest, VARIABLE] };
  return { ...about, ...mapped(rest, (value, keyword) => keywordAsWritten(keyword, value)) };
}

function isConstrainedScalar(schema: Readonly<Record<string, unknown>>): boolean {
  const types = [schema.type].flat();
  if (types.includes('object') || types.includes('array')) return false;
  if (types.some((type) => type === 'number' || type === 'integer' || type === 'boolean')) return true;
  return CONSTRAINTS.some((keyword) => Object.hasOwn(schema, keyword));
}

/** Keywords whose value is a schema or a list of schemas. */
const OF_SCHEMAS = ['items', 'additionalProperties', 'anyOf'];
/** Keywords whose value has schemas by name. */
const OF_MEMBERS = ['properties', 'patternProperties'];

function keywordAsWritten(keyword: string, value: unknown): unknown {
  if (OF_MEMBERS.includes(keyword) && isRecord(value)) return mapped(value, asWritten);
  return OF_SCHEMAS.includes(keyword) ? asWritten(value) : value;
}

function mapped(record: Readonly<Record<string, unknown>>, to: (value: unknown, key: string) => unknown): object {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, to(value, key)]));
}
