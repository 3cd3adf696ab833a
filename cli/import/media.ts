import type { ApiDocument, Block, Operation } from './document.ts';
import { Inexpressible, type Note } from './left-out.ts';
import { valuesOf } from './schema.ts';
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

const JSON_TYPE = 'application/json';

/** The media types of an operation: of its answer, and of its body where it has one. */
export interface MediaTypes {
  readonly answer: string | undefined;
  readonly body: string | undefined;
}

/**
 * The headers `Accept` and `Content-Type` of an operation, where they are not what the service sends by itself.
 * @throws Inexpressible for one that has to name something else than JSON.
 */
export function mediaHeadersOf(document: ApiDocument, operation: Operation, types: MediaTypes, note: Note): Block[] {
  const blocks = operation.parameters.map((value) => document.block(value));
  const headerOf = (name: string, stated: string | undefined, isSent: boolean): Block[] => {
    const declared = blocks.find((each) => each.in === 'header' && isNamed(each, name));
    // Without a body no type is sent, unless the upstream insists.
    const isForced = !isSent && declared?.required === true;
    const value =
      (isSent || isForced ? typeIn(document, name, declared, stated) : undefined) ?? (isForced && JSON_TYPE);
    if (value !== false && value !== undefined) {
      note(`header "${name}"`, `is fixed to ${value}`);
      return [{ name, in: 'header', fixed: literal(value) }];
    }
    if (declared !== undefined) note(`header parameter "${declared.name}"`, 'goes by itself');
    return [];
  };
  return [...headerOf('Accept', types.answer, true), ...headerOf('Content-Type', types.body, types.body !== undefined)];
}

function isNamed({ name }: Block, wanted: string): boolean {
  return typeof name === 'string' && name.toLowerCase() === wanted.toLowerCase();
}

/**
 * The type to name in a header, or nothing where the service's own is right.
 * @param stated by the answer or the body. It wins over a default, and the choices of the header win over it.
 */
function typeIn(document: ApiDocument, name: string, declared: Block | undefined, stated: string | undefined) {
  const schema = document.block(declared?.schema ?? declared);
  const choices = valuesOf(document, schema);
  const possible = choices.filter(isJsonList);
  if (declared?.required === true && choices.length > 0 && possible.length === 0)
    throw new Inexpressible(`needs the header "${name}" with a type that is not JSON`);
  const fallback = declared?.required === true && isJsonList(schema.default) ? schema.default : undefined;
  const type = possible.find((each) => each === stated) ?? jsonOf(possible) ?? unlessPlain(stated) ?? fallback;
  return unlessPlain(type);
}

function unlessPlain(type: string | undefined): string | undefined {
  return type === undefined || PLAIN.test(type.trim()) ? undefined : type;
}

/** Some headers name several types. */
function isJsonList(types: unknown): types is string {
  return typeof types === 'string' && types.split(',').every(isJson);
}
