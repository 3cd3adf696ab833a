import type { Block } from './document.ts';
import type { Note } from './left-out.ts';
import { literal } from './text.ts';

/** Whether a media type is JSON, or may be. */
export function isJson(type: string): boolean {
  return /^(?:[^/,]+\/(?:[^;,]*\+)?json|\*\/\*|application\/\*)\s*(?:;|$)/i.test(type.trim());
}

/** What the service asks for and sends by itself. */
const PLAIN = /^(?:application\/(?:json|\*|\*\+json)|\*\/\*)\s*(?:;\s*(?:charset|q)=[^;]*)*$/i;

/** The JSON among media types: what the service says by itself where it is one of them, else the first. */
export function jsonOf(types: readonly string[]): string | undefined {
  return types.find((type) => PLAIN.test(type.trim())) ?? types.find(isJson);
}

/**
 * The headers `Accept` and `Content-Type` of an operation, where they are not what the service sends by itself.
 * @param types of the answer and of the body.
 */
export function mediaHeadersOf(types: { readonly [header: string]: string | undefined }, note: Note): Block[] {
  return Object.entries(types).flatMap(([name, type]) => {
    if (type === undefined || PLAIN.test(type.trim())) return [];
    note(`header "${name}"`, `is fixed to ${type}`);
    return [{ name, in: 'header', fixed: literal(type) }];
  });
}
