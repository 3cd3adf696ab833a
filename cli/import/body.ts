import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible, type Note, unlessInexpressible } from './left-out.ts';
import { jsonOf } from './media.ts';
import { parameterOf } from './parameters.ts';
import { partsOf, readOnlyIn } from './schema.ts';

/**
 * Makes a parameter of each member of a JSON body or a form.
 * @returns the parameters, with the media type of a JSON body.
 * @throws Inexpressible for any other body, since without it the operation would do something else.
 */
export function bodyOf(document: ApiDocument, operation: Operation, note: Note) {
  const request = requestOf(document, operation);
  if (request === undefined) return { parameters: [] };
  const { schema, type, isForm = false } = request;
  return { parameters: membersOf(document, document.block(schema), isForm, note), type, isForm };
}

function membersOf(document: ApiDocument, schema: Block, isForm: boolean, note: Note): Block[] {
  const parts = partsOf(document, schema);
  if (parts.every(({ properties }) => properties === undefined))
    throw new Inexpressible('takes a body that is no object with known members');
  for (const choice of ['oneOf', 'anyOf'])
    if (parts.some((part) => part[choice] !== undefined)) note('the body', `what it has by "${choice}" is left out`);
  const required = new Set(parts.flatMap((part) => listOf(part.required)));
  const hidden = new Set(parts.flatMap((part) => readOnlyIn(document, part)));
  const members = new Map<string, unknown>();
  // A member of the object itself wins over one of its parts.
  for (const { properties } of parts)
    for (const [name, value] of Object.entries(document.block(properties)))
      if (!members.has(name)) members.set(name, value);
  return [...members].flatMap(([name, value]) => {
    const what = `body parameter "${name}"`;
    const lose = (reason: string) => note(what, reason);
    if (hidden.has(name)) {
      lose('is read-only, and left out');
      return [];
    }
    const stated = document.block(value);
    const parameter = { name, in: 'body', description: stated.description };
    const about = { isRequired: required.has(name), isText: isForm, lose };
    return unlessInexpressible(what, about.isRequired, note, () => parameterOf(document, parameter, stated, about));
  });
}

const FORM = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** @throws Inexpressible for a body that is neither JSON nor a form. */
function requestOf(document: ApiDocument, { block, parameters }: Operation) {
  if (document.isSwagger) {
    const all = parameters.map((value) => document.block(value));
    const fields = all.filter(({ in: place }) => place === 'formData');
    if (fields.length > 0) return { schema: formOf(fields), isForm: true };
    const body = all.find(({ in: place }) => place === 'body');
    const types = listOf(block.consumes ?? document.root.consumes).map(String);
    return body && { type: chosenOf(types), schema: body.schema };
  }
  const media = document.block(document.block(block.requestBody).content);
  const types = Object.keys(media);
  if (types.length === 0) return undefined;
  const form = types.find((each) => FORM.test(each.trim()));
  if (form !== undefined && jsonOf(types) === undefined)
    return { schema: document.block(media[form]).schema, isForm: true };
  const type = chosenOf(types);
  return { type, schema: document.block(media[type]).schema };
}

/** Makes the schema of a form, whose fields are single parameters in Swagger. */
function formOf(fields: readonly Block[]): Block {
  const required = fields.flatMap(({ name, required }) => (required === true ? [name] : []));
  return { properties: Object.fromEntries(fields.map((field) => [String(field.name), field])), required };
}

/** Returns the JSON type among a body's types; `application/json` if none is named. @throws Inexpressible */
function chosenOf(types: readonly string[]): string {
  const type = types.length === 0 ? 'application/json' : jsonOf(types);
  if (type !== undefined) return type;
  throw new Inexpressible(
    `takes a body in ${types.map((each) => each.slice(0, 60)).join(', ')}, neither JSON nor a form`,
  );
}
