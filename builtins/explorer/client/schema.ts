import type { PublicParameter } from '../endpoint.ts';
import { element } from './dom.ts';
import type { Content } from './fields.ts';

type Schema = NonNullable<PublicParameter['schema']>;

/** The values that a parameter may have, as JSON; the first is none. */
export function choiceControl(choices: readonly unknown[], fallback: unknown): HTMLSelectElement {
  const none = fallback === undefined ? '' : `default: ${String(fallback)}`;
  const options = choices.map((choice) => element('option', { value: JSON.stringify(choice) }, String(choice)));
  return element('select', {}, element('option', { value: '' }, none), ...options);
}

/** JSON of a text that was given: a number or a boolean where the schema takes no text. */
export function typed({ type }: Schema, content: Content<string>): Content<string> {
  if (!('value' in content) || content.value === undefined) return content;
  const takesText = [type ?? 'string'].flat().includes('string');
  const isLiteral = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false)$/.test(content.value);
  return isLiteral && !takesText ? content : { value: JSON.stringify(content.value) };
}

/** What a schema asks for, in words. */
export function boundsOf(schema: Schema): string[] {
  const words = Object.entries(schema).flatMap(([keyword, value]) => {
    if (keyword === 'description' || keyword === 'title') return [];
    const each = [value].flat().map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
    return [`${keyword}: ${each.join(', ')}`];
  });
  return words.length === 0 ? [] : [`Must have ${words.join('; ')}.`];
}
