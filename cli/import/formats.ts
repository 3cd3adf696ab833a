import type { ApiDocument, Block } from './document.ts';
import { isJson } from './media.ts';
import { valuesOf } from './schema.ts';

/** Names of parameters that choose the format of an answer, in lower case and without marks. */
const NAME =
  /(?:format|fmt|extension)$|^(?:f|r|wt|alt|ext|fileext|mode|render|syntax|output|(?:output|response|return|result|file|data|content|media|mime)type)$/;
/** In a body other such names describe what is stored there. */
const BODY_NAME = /^(?:output|response|return|result|answer)(?:format|type)$/;
/** What looks for things of a format. */
const FILTER = /\b(?:filter|restrict|search for|limits? (?:the )?results)/i;
/** Formats of what is sent, or looked at, rather than of the answer. */
const OTHER = /^(?:in|input|request|req|source|src|import|upload|from|body)/;

/** The value by which a parameter asks for JSON, where it chooses the format of the answer. */
export function jsonChoiceOf(document: ApiDocument, parameter: Block, schema: Block): string | undefined {
  const { name, in: place, description } = parameter;
  const plain = String(name)
    .toLowerCase()
    .replace(/[^a-z]/g, '');
  const isFormat = (place === 'body' ? BODY_NAME : NAME).test(plain) && !OTHER.test(plain);
  if (!isFormat || FILTER.test(String(description ?? ''))) return undefined;
  const values = valuesOf(document, schema).filter((value): value is string => typeof value === 'string');
  return (
    values.find((value) => /^\.?json$/i.test(value)) ?? values.find((value) => isJson(value) && !value.includes('*'))
  );
}
