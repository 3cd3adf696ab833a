import { randomUUID } from 'node:crypto';
import { canonicalJson } from '../lib/json/canonical-json.ts';
import type { Json } from '../lib/json/value.ts';

const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[-+.\deE]*/gs;

/** JSON whose numbers stay as they are written, digit by digit. */
export interface WrittenJson {
  /** The value with its members sorted, in which a marked text stands for each number. */
  readonly marked: Json;
  /** JSON of any part of `marked`, with the numbers as they are written. */
  written(json: string): string;
}

/** @param json that JSON.parse accepts. */
export function writtenJson(json: string): WrittenJson {
  const mark = randomUUID();
  const numbers = new RegExp(`"${mark}([^"]*)"`, 'g');
  const marked = json.replace(STRING_OR_NUMBER, (token) => (token.startsWith('"') ? token : `"${mark}${token}"`));
  return {
    marked: JSON.parse(canonicalJson(JSON.parse(marked))),
    written: (text) => text.replaceAll(numbers, '$1'),
  };
}
