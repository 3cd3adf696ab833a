import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible, type Note } from './left-out.ts';
import { jsonOf } from './media.ts';
import { asJson, restOf } from './parameters.ts';
import { readOnlyIn } from './schema.ts';
import { literal, summary } from './text.ts';

/** What an operation sends as its body. */
export interface Body {
  readonly parameters: readonly Block[];
  readonly type?: string | undefined;
}

/**
 * A parameter for each member of a JSON body.
 * @throws Inexpressible for a body that is no object in JSON: without it the operation would ask for something else.
 */
export function bodyOf(document: ApiDocument, operation: Operation, note: Note): Body {
  const request = requestOf(document, operation);
  if (request === undefined) return { parameters: [] };
  return { parameters: membersOf(document, document.block(request.schema), note), type: request.type };
}

function membersOf(document: ApiDocument, schema: Block, note: Note): Block[] {
  const parts = partsOf(document, schema);
  if (parts.every(({ properties }) => properties === undefined))
    throw new Inexpressible('takes a body that is no object with known members');
  for (const choice of ['oneOf', 'anyOf'])
    if (parts.some((part) => part[choice] !== undefined)) note('the body', `what it has by "${choice}" is left out`);
  const required = new Set(parts.flatMap((part) => listOf(part.required)));
  const hidden = new Set(parts.flatMap((part) => readOnlyIn(document, part)));
  const members = new Map<string, unknown>();
  // What an object says itself wins over what it is made of.
  for (const { properties } of parts)
    for (const [name, value] of Object.entries(document.block(properties)))
      if (!members.has(name)) members.set(name, value);
  return [...members].flatMap(([name, value]) => {
    const lose = (reason: string) => note(`body parameter "${name}"`, reason);
    if (hidden.has(name)) {
      lose('is read-only, and left out');
      return [];
    }
    const stated = document.block(value);
    const about = summary(stated.description);
    const parameter = { name, in: 'body', description: stated.description };
    const rest = { isRequired: required.has(name), isText: false, lose };
    return {
      ...{ name: literal(name), in: 'body' },
      ...(asJson(document, parameter, stated, lose) ?? restOf(document, stated, rest)),
      ...(about === undefined ? {} : { description: literal(about) }),
    };
  });
}

/** An object and the objects that it is made of, each once. */
function partsOf(document: ApiDocument, schema: Block, seen = new Set<Block>()): Block[] {
  if (seen.has(schema)) return [];
  seen.add(schema);
  return [schema, ...listOf(schema.allOf).flatMap((part) => partsOf(document, document.block(part), seen))];
}

interface RequestBody {
  readonly schema: unknown;
  readonly type: string;
}

/** @throws Inexpressible for a body that is no JSON. */
function requestOf(document: ApiDocument, { block, parameters }: Operation): RequestBody | undefined {
  if (document.isSwagger) {
    const all = parameters.map((value) => document.block(value));
    if (all.some(({ in: place }) => place === 'formData'))
      throw new Inexpressible('takes a body that is a form, not JSON');
    const body = all.find(({ in: place }) => place === 'body');
    const types = listOf(block.consumes ?? document.root.consumes).map(String);
    return body && { type: chosenOf(types), schema: body.schema };
  }
  const media = document.block(document.block(block.requestBody).content);
  const types = Object.keys(media);
  if (types.length === 0) return undefined;
  const type = chosenOf(types);
  return { type, schema: document.block(media[type]).schema };
}

/** Of types that a body may have the JSON, which it is where none is named. @throws Inexpressible */
function chosenOf(types: readonly string[]): string {
  const type = types.length === 0 ? 'application/json' : jsonOf(types);
  if (type !== undefined) return type;
  throw new Inexpressible(`takes a body in ${types.map((each) => each.slice(0, 60)).join(', ')}, not in JSON`);
}
