import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible, type Note } from './left-out.ts';
import { jsonOf } from './media.ts';
import { asJson, restOf } from './parameters.ts';
import { readOnlyIn } from './schema.ts';
import { literal, sentence } from './text.ts';

/** Methods whose body has no meaning by HTTP: without it they ask for the same. */
const BODILESS = new Set(['GET', 'DELETE']);

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
  try {
    const { schema, type, why } = request;
    if (why !== undefined) throw new Inexpressible(why);
    return { parameters: membersOf(document, document.block(schema), note), type };
  } catch (error) {
    if (!(error instanceof Inexpressible) || request.isRequired || !BODILESS.has(operation.method)) throw error;
    note('the body', error.message);
    return { parameters: [] };
  }
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
    const about = sentence(stated.description);
    const parameter = { name, in: 'body', description: stated.description };
    const rest = { isRequired: required.has(name), isText: false, lose };
    return {
      ...{ name: literal(name), in: 'body' },
      ...(asJson(document, parameter, stated, lose) ?? restOf(document, stated, rest)),
      ...(about === undefined ? {} : { description: literal(about) }),
    };
  });
}

/** Objects that one is made of: one that is part of itself several times would have no end. */
const MAX_PARTS = 200;

/** An object and the objects that it is made of. @throws Inexpressible for one that is part of itself. */
function partsOf(document: ApiDocument, schema: Block, room = { parts: MAX_PARTS }): Block[] {
  const { allOf, ...own } = schema;
  const inner = listOf(allOf);
  if (inner.length > room.parts) return [own];
  room.parts -= inner.length;
  return [own, ...inner.flatMap((part) => partsOf(document, document.block(part), room))];
}

interface RequestBody {
  readonly isRequired: boolean;
  readonly schema?: unknown;
  readonly type?: string | undefined;
  /** Why it cannot be sent. */
  readonly why?: string;
}

function requestOf(document: ApiDocument, { block, parameters }: Operation): RequestBody | undefined {
  if (document.isSwagger) {
    const all = parameters.map((value) => document.block(value));
    const body = all.find(({ in: place }) => place === 'body');
    const types = listOf(block.consumes ?? document.root.consumes).map(String);
    if (body !== undefined) return { isRequired: body.required === true, ...chosenOf(types, body.schema) };
    const form = all.filter(({ in: place }) => place === 'formData');
    const isRequired = form.some(({ required }) => required === true);
    return form.length === 0 ? undefined : { isRequired, why: 'takes a body that is a form, not JSON' };
  }
  if (block.requestBody === undefined) return undefined;
  const { content, required } = document.block(block.requestBody);
  const media = document.block(content);
  const types = Object.keys(media);
  if (types.length === 0) return undefined;
  const type = jsonOf(types);
  const { schema } = document.block(type === undefined ? undefined : media[type]);
  return { isRequired: required === true, ...chosenOf(types, schema) };
}

/** Of types that a body may have the JSON, which it is where none is named. */
function chosenOf(types: readonly string[], schema: unknown): Omit<RequestBody, 'isRequired'> {
  const type = jsonOf(types);
  if (type !== undefined || types.length === 0) return { type: type ?? 'application/json', schema };
  return { why: `takes a body in ${types.map((each) => each.slice(0, 60)).join(', ')}, not in JSON` };
}
