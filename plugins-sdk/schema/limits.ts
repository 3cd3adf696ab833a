import { Errors } from 'typebox/value';
import { missingScheme } from '../../lib/http/target.ts';
import { isDuration } from './duration.ts';
import type { SchemaNode } from './node.ts';

const BOUNDS: Readonly<Record<string, string>> = {
  minimum: 'must be at least',
  maximum: 'must be at most',
  exclusiveMinimum: 'must be more than',
  exclusiveMaximum: 'must be less than',
  multipleOf: 'must be a multiple of',
};

const UNITS: Readonly<Record<string, string>> = { Length: 'characters', Items: 'entries', Properties: 'keys' };

/** Returns the bounds that a value of the right type breaks, in words. A text's form is named only if its size is right. */
export function limits(node: SchemaNode, value: unknown): string[] {
  const own = Errors(node.raw, value).filter(({ schemaPath }) => schemaPath === '#');
  const unit = isDuration(node) ? ' ms' : '';
  const bounds = own.flatMap(({ keyword, params }) => boundText(keyword, Object.values(params).at(-1), unit));
  const form = own.find(({ keyword }) => keyword === 'pattern' || keyword === 'format');
  return bounds.length > 0 || form === undefined ? bounds : [formText(node, form.keyword, String(value))];
}

function boundText(keyword: string, limit: unknown, unit: string): string[] {
  if (BOUNDS[keyword] !== undefined) return [`${BOUNDS[keyword]} ${limit}${unit}`];
  const [, least, size = ''] = /^(?:(min)|max)(Length|Items|Properties)$/.exec(keyword) ?? [];
  if (UNITS[size] === undefined) return [];
  if (least && limit === 1) return ['must not be empty'];
  return [`must have at ${least ? 'least' : 'most'} ${limit} ${UNITS[size]}`];
}

function formText(node: SchemaNode, keyword: string, value: string): string {
  const form = String(node.keyword(keyword));
  const [, scheme, secure] = /^\^(\w+)(s)\?:\/\//.exec(form) ?? [];
  const missing = scheme === undefined ? undefined : missingScheme(value, `${scheme}${secure}:// or ${scheme}://`);
  const description = node.keyword('description');
  const expected = typeof description === 'string' ? `, expected: ${description}` : '';
  return missing ?? `has the wrong form${expected} (${keyword} ${form})`;
}
