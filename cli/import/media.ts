import type { Block } from './document.ts';
import type { Note } from './left-out.ts';
import { literal } from './text.ts';

/** Returns whether a media type is JSON, or may be. */
export function isJson(type: string): boolean {
  return /^(?:[^/,]+\/(?:[^;,]*\+)?json|\*\/\*|application\/\*)\s*(?:;|$)/i.test(type.trim());
}

/** Matches media types that the service accepts and sends by default. */
const PLAIN = /^(?:application\/(?:json|\*|\*\+json)|\*\/\*)\s*(?:;\s*(?:charset|q)=[^;]*)*$/i;

/** Returns the JSON type among media types: the service's default if it is one of them, else the first. */
export function jsonOf(types: readonly string[]): string | undefined {
  return types.find((type) => PLAIN.test(type.trim())) ?? types.find(isJson);
}

/**
 * Makes parameters for `Accept` and `Content-Type` of an operation, where they are not the service's defaults.
 * @param types the media types of the answer and of the body.
 */
export function mediaHeadersOf(types: { readonly [header: string]: string | undefined }, note: Note): Block[] {
  return Object.entries(types).flatMap(([name, type]) => {
    if (type === undefined || PLAIN.test(type.trim())) return [];
    note(`header "${name}"`, `is fixed to ${type}`);
    return [{ name, in: 'header', fixed: literal(type) }];
  });
}
