import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible, type Note } from './left-out.ts';
import { jsonOf } from './media.ts';
import { parameterOf } from './parameters.ts';
import { partsOf, readOnlyIn } from './schema.ts';

/**
 * Makes a parameter of each member of a JSON body or a form.
 * @returns the parameters, with the media type of a JSON body.
 * @throws Inexpressible for any other body, since without it the operation would do something else.
 */
export function bodyOf(document: ApiDocument, operation: Operation, note: Note) {
  const media = mediaOf(document, operation, note);
  const types = Object.keys(media);
  if (types.length === 0) return { parameters: [] };
  const json = jsonOf(types);
  const type = json ?? types.find(isFormType);
  if (type === undefined)
    throw new Inexpressible(
      `takes a body in ${types.map((each) => each.slice(0, 60)).join(', ')}, neither JSON nor a form`,
    );
  const isForm = json === undefined;
  const { schema } = document.block(media[type]);
  return { parameters: membersOf(document, document.block(schema), isForm, note), type: json, isForm };
}

function membersOf(document: ApiDocument, schema: Block, isForm: boolean, note: Note): Block[] {
  const parts = partsOf(document, schema);
  if (parts.every(({ properties }) => properties === undefined))
    throw new Inexpressible('takes a body that is no object with known members');
  for (const choice of ['oneOf', 'anyOf'])
    if (parts.some((part) => part[choice] !== undefined)) note('the body', `what it has by "${choice}" is left out`);
  const required = new Set(parts.flatMap((part) => listOf(part.required)));
  const hidden = new Set(readOnlyIn(document, schema));
  const members = new Map<string, unknown>();
  // A member of the object itself wins over one of its parts.
  for (const { properties } of parts)
    for (const [name, schema] of Object.entries(document.block(properties)))
      if (!members.has(name)) members.set(name, schema);
  return [...members].flatMap(([name, schema]) => {
    const parameter = { name, in: 'body', required: required.has(name), schema };
    if (!hidden.has(name)) return parameterOf(document, parameter, isForm, note);
    note(`body parameter "${name}"`, 'is read-only, and left out');
    return [];
  });
}

const FORM = 'application/x-www-form-urlencoded';
const isFormType = (type: string) => RegExp(`^${FORM}\\s*(?:;|$)`, 'i').test(type.trim());

/** Returns the schemas of a body by their media types, as OpenAPI 3 has them. */
function mediaOf(document: ApiDocument, { block, parameters }: Operation, note: Note): Block {
  if (!document.isSwagger) return document.block(document.block(block.requestBody).content);
  const all = parameters.map((value) => document.block(value));
  const types = listOf(block.consumes ?? document.root.consumes).map(String);
  const fields = all.filter(({ in: place }) => place === 'formData');
  // A document may name only JSON, for all of its operations.
  const form = types.find(isFormType) ?? types.find((type) => type.startsWith('multipart/')) ?? FORM;
  if (fields.length > 0) return { [form]: { schema: formOf(document, fields) } };
  const [body, ...others] = all.filter(({ in: place }) => place === 'body');
  if (body === undefined) return {};
  // One of the same name is the path's, which the operation replaces.
  for (const { name } of others.filter(({ name }) => name !== body.name))
    note(typeof name === 'string' ? `body "${name}"` : 'a body', 'is a second one, and left out');
  return Object.fromEntries((types.length > 0 ? types : ['application/json']).map((type) => [type, body]));
}

/** Makes the schema of a form, whose fields are single parameters in Swagger. Authors also write a schema in one. */
function formOf(document: ApiDocument, fields: readonly Block[]): Block {
  const required = fields.flatMap(({ name, required }) => (required === true ? [name] : []));
  const members = fields.map((field) => [String(field.name), { ...field, ...document.block(field.schema) }]);
  return { properties: Object.fromEntries(members), required };
}
