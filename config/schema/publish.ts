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
  if (!isRecord(schema)) return schema;
  const { description, ...rest } = schema;
  const about = description === undefined ? {} : { description };
  if (schema[DURATION] !== undefined) {
    const { [DURATION]: _, ...integer } = rest;
    return { ...about, anyOf: [integer, { type: 'string', pattern: DURATION_PATTERN }, VARIABLE] };
  }
  if (isConstrainedScalar(schema)) return { ...about, anyOf: [rest, VARIABLE] };
  return {
    ...about,
    ...Object.fromEntries(Object.entries(rest).flatMap(([keyword, value]) => keywordAsWritten(keyword, value))),
  };
}

function isConstrainedScalar(schema: Readonly<Record<string, unknown>>): boolean {
  const types = [schema.type].flat();
  if (types.includes('object') || types.includes('array')) return false;
  if (types.some((type) => type === 'number' || type === 'integer' || type === 'boolean')) return true;
  return CONSTRAINTS.some((keyword) => Object.hasOwn(schema, keyword));
}

const OF_MEMBERS = ['properties', 'patternProperties'];
const OF_ONE = ['items', 'additionalProperties'];
const OF_LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];

function keywordAsWritten(keyword: string, value: unknown): [string, unknown][] {
  // An older draft expresses a tuple in this way.
  if (keyword === 'additionalItems') return [];
  if (keyword === 'items' && Array.isArray(value)) return [...keywordAsWritten('prefixItems', value), ['items', false]];
  if (OF_ONE.includes(keyword)) return [[keyword, asWritten(value)]];
  if (OF_MEMBERS.includes(keyword) && isRecord(value)) {
    const members = Object.entries(value).map(([key, member]) => [key, asWritten(member)]);
    return [[keyword, Object.fromEntries(members)]];
  }
  if (!OF_LIST.includes(keyword) || !Array.isArray(value)) return [[keyword, value]];
  return [[keyword === 'oneOf' ? 'anyOf' : keyword, value.map(asWritten)]];
}
