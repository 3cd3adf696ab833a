import type { ApiDocument, Block } from './document.ts';
import type { Note } from './left-out.ts';
import { partsOf } from './schema.ts';

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
    return [{ name, in: 'header', fixed: type }];
  });
}

/** Matches names of parameters that choose the answer's format, in lower case and without punctuation. */
const NAME =
  /(?:format|fmt|extension)$|^(?:f|r|wt|alt|ext|fileext|mode|render|syntax|output|(?:output|response|return|result|file|data|content|media|mime)type)$/;
/** Matches such names in a body, where the other names describe stored data. */
const BODY_NAME = /^(?:output|response|return|result|answer)(?:format|type)$/;
/** Matches descriptions of parameters that search for things of a format. */
const FILTER = /\b(?:filter|restrict|search for|limits? (?:the )?results)/i;
/** Matches names for the format of input, not of the answer. */
const OTHER = /^(?:in|input|request|req|source|src|import|upload|from|body)/;

/** Returns the value that asks for JSON, if a parameter chooses the answer's format. */
export function jsonChoiceOf(document: ApiDocument, parameter: Block, schema: Block): string | undefined {
  const { name, in: place, description } = parameter;
  const plain = String(name)
    .toLowerCase()
    .replace(/[^a-z]/g, '');
  const isFormat = (place === 'body' ? BODY_NAME : NAME).test(plain) && !OTHER.test(plain);
  if (!isFormat || FILTER.test(String(description ?? ''))) return undefined;
  const parts = partsOf(document, schema, ['items', 'allOf', 'anyOf', 'oneOf']);
  const choices = parts.flatMap((part) => part.enum ?? part.const ?? []);
  const values = choices.filter((value) => typeof value === 'string');
  return (
    values.find((value) => /^\.?json$/i.test(value)) ?? values.find((value) => isJson(value) && !value.includes('*'))
  );
}
