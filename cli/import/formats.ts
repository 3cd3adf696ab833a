import type { ApiDocument, Block } from './document.ts';
import { isJson, jsonOf } from './media.ts';
import { valuesOf } from './schema.ts';

/** Names of parameters that choose the format of an answer, in lower case and without marks. */
const NAME =
  /(?:format|fmt|extension)$|^(?:f|r|wt|alt|ext|fileext|mode|render|syntax|output|(?:output|response|return|result|file|data|content|media|mime)type)$/;
/** In a body most such names describe what is stored there. */
const BODY_NAME = /^(?:(?:output|response|return|result|answer)(?:format|type)|format|fmt|alt)$/;
/** What looks for things of a format. */
const FILTER = /\b(?:filter|restrict|search for|limits? (?:the )?results)/i;
/** Formats of what is sent, or looked at, rather than of the answer. */
const OTHER = /^(?:in|input|request|req|source|src|import|upload|from|body)/;
/** Formats that stand beside JSON under any name. */
const FORMAT =
  /^(?:json|jsonp|js|xml|rawxml|csv|tsv|txt|text|plain|html?|xhtml|ya?ml|rss\d?|atom\d?|rdf|proto|protobuf|php|msgpack|pdf|svg|png|jpe?g|excel|xlsx?|jsonl|kmz?l?|gml|gpx|shpz?|toml|media|[\w.+-]+\/[\w.+-]+.*)$/i;
/** What is JSON, and what is so under a name of its own. */
const JSON_VALUE = /^\.?json$/i;
const LIKE_JSON = /^(?!nd)(?:[a-z]{1,5}[-_.+]?)?json(?:[-_.]?(?:ld|hal|api|v?\d[\d.]*))?$/i;

/**
 * The value by which a parameter asks for JSON, where it chooses the format of the answer. A filter that has formats as its values
 * chooses none.
 */
export function jsonChoiceOf(document: ApiDocument, parameter: Block, schema: Block): string | undefined {
  const { name, in: place, description } = parameter;
  const plain = String(name)
    .toLowerCase()
    .replace(/[^a-z]/g, '');
  if (OTHER.test(plain) || FILTER.test(String(description ?? ''))) return undefined;
  const values = valuesOf(document, schema).filter((value): value is string => typeof value === 'string');
  const isInBody = place === 'body';
  const isNamed = (isInBody ? BODY_NAME : NAME).test(plain);
  // Under another name, and in a body, where formats of what is stored are given, too, all have to be those of answers.
  const isFormats = values.length > 1 && values.every((value) => FORMAT.test(value) || LIKE_JSON.test(value));
  if (isInBody ? !(isNamed && isFormats) : !(isNamed || isFormats)) return undefined;
  const exact = values.find((value) => JSON_VALUE.test(value));
  if (exact !== undefined || !isNamed) return exact;
  const types = values.filter((value) => isJson(value) && !value.includes('*'));
  return jsonOf(types) ?? values.find((value) => LIKE_JSON.test(value));
}
