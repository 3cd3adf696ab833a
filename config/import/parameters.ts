import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible } from './left-out.ts';
import { isScalar, SchemaReader } from './schema.ts';
import { encoded, literal, sentence } from './text.ts';

/** Says what a parameter lost, or why it is not there. */
export type Note = (what: string, reason: string) => void;

/** Parameters that carry a credential of the operator's, whatever the document says of them. */
const CREDENTIAL =
  /^(?:x-)?(?:api-?key|app-?(?:id|key)|access-?(?:key|token)|auth(?:-?token)?|authorization|api-?(?:token|secret)|client-?secret|secret(?:-?key)?|pass(?:word|wd)?|private-?key|subscription-?key|ocp-apim-subscription-key)$/i;

/** Whether somebody's credential belongs to a parameter of that name. */
export function isCredential(name: string): boolean {
  return CREDENTIAL.test(name.replaceAll('_', '-').replace(/([a-z])([A-Z])/g, '$1-$2'));
}

/** Headers that OpenAPI says elsewhere, or the HTTP client sends by itself. */
const ELSEWHERE = new Set([
  'accept',
  'content-type',
  'content-length',
  'host',
  'user-agent',
  'accept-encoding',
  'connection',
]);
const SEPARATORS: Readonly<Record<string, string>> = { csv: ',', ssv: ' ', tsv: 'tab', pipes: '|' };

/**
 * The parameters that an operation takes outside its body.
 * @param credential the value of one that carries a credential.
 * @throws Inexpressible for one that is required and that no config can have.
 */
export function parametersOf(
  document: ApiDocument,
  operation: Operation,
  credential: (name: string) => string,
  note: Note,
): Block[] {
  const seen = new Set<string>();
  const declared = operation.parameters.flatMap((value) => {
    const parameter = document.block(value);
    const { name, in: place } = parameter;
    if (typeof name !== 'string' || typeof place !== 'string' || place === 'body' || place === 'formData') return [];
    const key = `${place} ${place === 'header' ? name.toLowerCase() : name}`;
    if (seen.has(key)) return [];
    seen.add(key);
    if (place === 'path' && !operation.path.includes(`{${name}}`)) return [];
    const what = `${place} parameter "${name}"`;
    if (place === 'header' && ELSEWHERE.has(name.toLowerCase())) {
      note(what, 'goes by itself');
      return [];
    }
    if (isCredential(name)) {
      note(what, `is taken for a credential of yours, \${${credential(name)}}`);
      return [{ name: literal(name), ...placeOf(place), fixed: `\${${credential(name)}}` }];
    }
    try {
      return [parameterOf(document, parameter, (reason) => note(what, reason))];
    } catch (error) {
      if (!(error instanceof Inexpressible)) throw error;
      if (parameter.required === true) throw new Inexpressible(`${what} ${error.message}`);
      note(what, error.message);
      return [];
    }
  });
  const missing = [...operation.path.matchAll(/\{([^{}]*)\}/g)].filter(([, name]) => !seen.has(`path ${name}`));
  return [
    ...declared,
    ...missing.map(([, name = '']) => ({ name: literal(encoded(name)), in: 'path', required: true })),
  ];
}

function placeOf(place: string): Block {
  return place === 'query' ? {} : { in: literal(place) };
}

function parameterOf(document: ApiDocument, parameter: Block, lose: (reason: string) => void): Block {
  const { name, in: place, required, description, content } = parameter;
  const [media] = Object.values(document.block(content)).map((value) => document.block(value));
  const stated = media === undefined ? document.block(parameter.schema ?? parameter) : { type: 'string' };
  const schema = listed(document, parameter, stated, lose);
  if (media !== undefined) lose('is given as text');
  const isRequired = required === true || place === 'path';
  const about = sentence(description);
  return {
    // What a path parameter is called, only the path itself says.
    name: literal(place === 'path' ? encoded(String(name)) : String(name)),
    ...placeOf(String(place)),
    ...restOf(document, schema, { isRequired, lose, name: String(name), isText: true }),
    ...(about === undefined ? {} : { description: literal(about) }),
  };
}

/** What a value may be where a list would travel as text, or one of its items alone. @throws Inexpressible for an object. */
function listed(document: ApiDocument, parameter: Block, schema: Block, lose: (reason: string) => void): Block {
  const { style, explode = style === undefined || style === 'form', collectionFormat, in: place } = parameter;
  const type = listOf(schema.type)[0] ?? schema.type;
  if (type === 'object' || (type === undefined && schema.properties !== undefined))
    throw new Inexpressible('is an object, which only a body can carry');
  if (type === 'file') throw new Inexpressible('is a file');
  if (type !== 'array') return schema;
  const isForm = place === 'query' || place === 'cookie';
  if (document.isSwagger ? collectionFormat === 'multi' : isForm && explode) {
    lose('is a list, of which one item can be sent');
    return document.block(schema.items);
  }
  const separator = document.isSwagger
    ? SEPARATORS[String(collectionFormat ?? 'csv')]
    : ({ spaceDelimited: ' ', pipeDelimited: '|' }[String(style)] ?? ',');
  lose(`is a list, given as text with "${separator}" between its items`);
  return { type: 'string' };
}

interface About {
  readonly name: string;
  readonly isRequired: boolean;
  /** Whether it is text where nothing else is said. */
  readonly isText: boolean;
  readonly lose: (reason: string) => void;
}

/** `required`, `fixed`, `default` and `schema` of a parameter, as short as they can be. */
export function restOf(document: ApiDocument, stated: Block, { name, isRequired, isText, lose }: About): Block {
  const reader = new SchemaReader(document);
  const schema = reader.read(stated);
  for (const reason of reader.lost) lose(reason);
  const [only, another] = listOf(schema.enum);
  if (isRequired && another === undefined && isScalar(only) && only !== '') return { fixed: only };
  const { default: fallback } = document.block(stated);
  const isUsable = isScalar(fallback) && !isRequired && !/key|token|secret|passw|session|auth/i.test(name);
  if (fallback !== undefined && fallback !== null && !isUsable) lose('has a default that is not taken over');
  const rest = Object.keys(schema).filter((key) => !(isText && key === 'type' && schema.type === 'string'));
  return {
    ...(isRequired ? { required: true } : {}),
    ...(isUsable ? { default: typeof fallback === 'string' ? literal(fallback) : fallback } : {}),
    ...(rest.length === 0 ? {} : { schema }),
  };
}

/**
 * A parameter for each member of a JSON body.
 * @throws Inexpressible for a body that is required and no object in JSON.
 */
export function bodyOf(document: ApiDocument, operation: Operation, note: Note): Block[] {
  const request = requestOf(document, operation);
  if (request === undefined) return [];
  try {
    const { schema, why } = request;
    if (why !== undefined) throw new Inexpressible(why);
    const { properties, required, allOf } = withParts(document, document.block(schema));
    if (properties === undefined || allOf !== undefined)
      throw new Inexpressible('takes a body that is no object with known members');
    const requiredNames = new Set(listOf(required));
    return Object.entries(document.block(properties)).map(([name, value]) => {
      const lose = (reason: string) => note(`body parameter "${name}"`, reason);
      const isRequired = requiredNames.has(name);
      const about = sentence(document.block(value).description);
      return {
        ...{ name: literal(name), in: 'body' },
        ...restOf(document, document.block(value), { isRequired, lose, name, isText: false }),
        ...(about === undefined ? {} : { description: literal(about) }),
      };
    });
  } catch (error) {
    if (!(error instanceof Inexpressible) || request.isRequired) throw error;
    note('the body', error.message);
    return [];
  }
}

/** Objects that one is made of: one that is part of itself several times would have no end. */
const MAX_PARTS = 200;

/** An object together with the objects that it is made of. */
function withParts(document: ApiDocument, schema: Block, room = { parts: MAX_PARTS }): Block {
  const { allOf, ...own } = schema;
  if (!Array.isArray(allOf) || allOf.length > room.parts) return schema;
  room.parts -= allOf.length;
  const parts = [own, ...allOf.map((part) => withParts(document, document.block(part), room))];
  return {
    properties: Object.fromEntries(parts.flatMap(({ properties }) => Object.entries(document.block(properties)))),
    required: parts.flatMap(({ required }) => listOf(required)),
  };
}

interface RequestBody {
  readonly isRequired: boolean;
  readonly schema?: unknown;
  /** Why it cannot be sent. */
  readonly why?: string;
}

function requestOf(document: ApiDocument, { block, parameters }: Operation): RequestBody | undefined {
  if (document.isSwagger) {
    const all = parameters.map((value) => document.block(value));
    const body = all.find(({ in: place }) => place === 'body');
    if (body !== undefined) return { isRequired: body.required === true, schema: body.schema };
    const form = all.filter(({ in: place }) => place === 'formData');
    const isRequired = form.some(({ required }) => required === true);
    return form.length === 0 ? undefined : { isRequired, why: 'takes a body that is a form, not JSON' };
  }
  if (block.requestBody === undefined) return undefined;
  const { content, required } = document.block(block.requestBody);
  const media = Object.entries(document.block(content));
  const isRequired = required === true;
  const json = media.find(([type]) => isJson(type));
  if (json !== undefined) return { isRequired, schema: document.block(json[1]).schema };
  const types = media.map(([type]) => type.slice(0, 60)).join(', ');
  return media.length === 0 ? undefined : { isRequired, why: `takes a body in ${types}, not in JSON` };
}

/** Whether a media type is JSON, or may be. */
export function isJson(type: string): boolean {
  return /^(?:[^/]+\/(?:[^;]*\+)?json|\*\/\*|application\/\*)\s*(?:;|$)/i.test(type.trim());
}
