import { Check } from 'typebox/value';
import { missingScheme } from '../../lib/http/target.ts';
import { isDuration } from './duration.ts';
import type { SchemaNode } from './node.ts';

/** The keywords of bounds, in words. */
const BOUNDS: Readonly<Record<string, (limit: string) => string>> = {
  minimum: (limit) => `must be at least ${limit}`,
  maximum: (limit) => `must be at most ${limit}`,
  exclusiveMinimum: (limit) => `must be more than ${limit}`,
  exclusiveMaximum: (limit) => `must be less than ${limit}`,
  multipleOf: (limit) => `must be a multiple of ${limit}`,
  minLength: (limit) => atLeast(limit, 'characters'),
  maxLength: (limit) => `must have at most ${limit} characters`,
  minItems: (limit) => atLeast(limit, 'entries'),
  maxItems: (limit) => `must have at most ${limit} entries`,
  minProperties: (limit) => atLeast(limit, 'keys'),
  maxProperties: (limit) => `must have at most ${limit} keys`,
};

/** Returns the bounds that a value of the right type breaks, in words. A text's form is named only if its size is right. */
export function limits(node: SchemaNode, value: unknown): string[] {
  // Each keyword is checked alone: TypeBox names eight errors at most, and those of a list's items might leave none.
  const isBroken = (keyword: string) => !Check({ [keyword]: node.keyword(keyword) }, value);
  const unit = isDuration(node) ? ' ms' : '';
  const bounds = Object.entries(BOUNDS).filter(([keyword]) => isBroken(keyword));
  if (bounds.length > 0) return bounds.map(([keyword, words]) => words(`${node.keyword(keyword)}${unit}`));
  const broken = ['pattern', 'format'].filter(isBroken).slice(0, 1);
  return broken.map((keyword) => formText(node, keyword, String(value)));
}

function atLeast(limit: string, unit: string): string {
  return limit === '1' ? 'must not be empty' : `must have at least ${limit} ${unit}`;
}

function formText(node: SchemaNode, keyword: string, value: string): string {
  const form = String(node.keyword(keyword));
  const [, scheme, secure] = /^\^(\w+)(s)\?:\/\//.exec(form) ?? [];
  const missing = scheme === undefined ? undefined : missingScheme(value, `${scheme}${secure}:// or ${scheme}://`);
  const description = node.keyword('description');
  const expected = typeof description === 'string' ? `, expected: ${description}` : '';
  return missing ?? `has the wrong form${expected} (${keyword} ${form})`;
}
