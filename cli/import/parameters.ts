import { isCredential, type Security } from './credentials.ts';
import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible, type Note, unlessInexpressible } from './left-out.ts';
import { jsonChoiceOf } from './media.ts';
import { isScalar, partsOf, readSchema } from './schema.ts';
import { encoded, summary } from './text.ts';

/** Headers that the HTTP client sets itself, or that follow from media types. */
const ELSEWHERE = /^header (?:content-length|host|user-agent|accept-encoding|connection|accept|content-type)$/;
/** The separators of a list's items, other than a comma: by `collectionFormat` in Swagger, by `style` in OpenAPI. */
const SEPARATORS = new Map(
  Object.entries({ ssv: ' ', tsv: 'tab', pipes: '|', multi: '&', spaceDelimited: ' ', pipeDelimited: '|' }),
);
/** The style of a config that sends a list with a separator. */
const STYLES: Readonly<Record<string, Sent['style']>> = { '&': 'repeat', ',': 'comma' };

/**
 * Makes the parameters of an operation outside its body.
 * @throws Inexpressible for a required one that no config can express.
 */
export function parametersOf(document: ApiDocument, operation: Operation, security: Security, note: Note): Block[] {
  const declared = declaredOf(document, operation, security, note);
  const parameters = [...declared.values()].flatMap((parameter) => {
    if (isCredential(document, parameter)) return credentialOf(parameter, security, note);
    return parameterOf(document, parameter, true, note);
  });
  const missing = [...operation.path.matchAll(/\{([^{}]*)\}/g)].filter(([, name]) => !declared.has(`path ${name}`));
  return [...parameters, ...missing.map(([, name = '']) => ({ name: encoded(name), in: 'path', required: true }))];
}

/** Makes a parameter whose value is a credential of the operator. None, if the operation has credentials and does not need it. */
function credentialOf({ name, in: place, required }: Block, security: Security, note: Note): Block[] {
  const what = `${place} parameter "${name}"`;
  if (security.hasWay && required !== true) {
    note(what, 'is another credential beside its security');
    return [];
  }
  const fixed = `\${${security.variable(String(name))}}`;
  note(what, `is taken for a credential of yours, ${fixed}`);
  return [{ name, ...placeOf(place), fixed }];
}

/** Returns a parameter's place and name, which no two of an operation share. */
export function keyOf({ name, in: place }: Block): string {
  return `${place} ${place === 'header' ? String(name).toLowerCase() : name}`;
}

/** Returns the parameters that a config may have, by {@link keyOf}. The operation's own win over its path's. */
function declaredOf(document: ApiDocument, { parameters, path }: Operation, { sent }: Security, note: Note) {
  const declared = new Map<string, Block>();
  for (const value of parameters) {
    const parameter = document.block(value);
    const { name, in: place } = parameter;
    if (place === 'body' || place === 'formData') continue;
    const what = `${place} parameter "${name}"`;
    const key = keyOf(parameter);
    if (declared.has(key)) continue;
    if (typeof name !== 'string' || typeof place !== 'string') note('a parameter', 'has no "name" or no "in"');
    else if (place === 'path' && !path.includes(`{${name}}`)) note(what, 'is not in the path');
    else if (ELSEWHERE.test(key)) note(what, 'goes by itself');
    else if (sent.has(key)) note(what, 'is sent as its security says');
    else declared.set(key, parameter);
  }
  return declared;
}

function placeOf(place: unknown): Block {
  return place === 'query' ? {} : { in: place };
}

/**
 * Makes a parameter; none of one that no config can express.
 * @param isText whether its type is text by default.
 * @throws Inexpressible for a required one.
 */
export function parameterOf(document: ApiDocument, parameter: Block, isText: boolean, note: Note): Block[] {
  const { name, in: place, required } = parameter;
  const what = `${place} parameter "${name}"`;
  const isRequired = required === true || place === 'path';
  return unlessInexpressible(what, isRequired, note, () => {
    const schema = document.block(parameter.schema ?? parameter);
    const { description = schema.description } = parameter;
    const described = summary(description);
    const stated = { ...parameter, required: isRequired, description };
    return {
      // A path parameter must have the name in the path, which is percent-encoded.
      name: place === 'path' ? encoded(String(name)) : String(name),
      ...placeOf(place),
      ...rulesOf(document, stated, schema, isText, (reason) => note(what, reason)),
      ...(described === undefined ? {} : { description: described }),
    };
  });
}

/** Returns `style`, `required`, `fixed` and `schema` of a parameter, as short as possible. @throws Inexpressible */
function rulesOf(document: ApiDocument, parameter: Block, stated: Block, isText: boolean, lose: Lose): Block {
  const { in: place, required } = parameter;
  // The service reads no answer but JSON.
  const json = jsonChoiceOf(document, parameter, stated);
  if (json !== undefined) {
    lose(`chooses the format of the answer, and is fixed to ${json}`);
    return { fixed: json };
  }
  // Fields of a form are encoded like query parameters, but a config gives them no style.
  const carrier = place === 'body' ? { ...stated, in: 'form' } : parameter;
  const sent: Sent = isText ? asText(document, carrier, stated, lose) : { schema: stated };
  const schema = readSchema(document, sent.schema, lose);
  const [only, another] = listOf(schema.enum);
  if (required === true && another === undefined && isScalar(only) && only !== '') {
    lose('has one choice, and is fixed to it');
    return { fixed: only };
  }
  // A default in the config would be sent beside other parameters that a client gives in its place.
  if (sent.schema.default !== undefined && sent.schema.default !== null)
    lose(`has a default, which ${required ? 'a required parameter cannot have' : 'the upstream applies by itself'}`);
  const rest = Object.keys(schema).filter((key) => !(isText && key === 'type' && schema.type === 'string'));
  return {
    ...(sent.style && { style: sent.style }),
    ...(required === true && { required }),
    ...(rest.length === 0 ? {} : { schema }),
  };
}

/** The schema of a value that is sent outside JSON, and the style of a list. */
interface Sent {
  readonly schema: Block;
  readonly style?: 'repeat' | 'comma';
}

/** Notes a reason why a parameter differs from the document's. */
type Lose = (reason: string) => void;

/** Returns the alternatives of a schema, or the schema itself, each with the members of its `allOf`. */
function choicesIn(document: ApiDocument, schema: Block): Block[] {
  const joined = (each: Block): Block => Object.assign({}, ...partsOf(document, each).toReversed());
  const whole = joined(schema);
  const choices = [whole.anyOf, whole.oneOf].flatMap(listOf);
  return choices.length === 0 ? [whole] : choices.map((choice) => joined(document.block(choice)));
}

/** Returns the type of a schema. `items` and `properties` imply one. */
function typeOf({ type, items, properties }: Block): unknown {
  const implied = items === undefined ? properties && 'object' : 'array';
  return [type].flat().find((each) => each !== 'null') ?? implied;
}

/** Returns whether a schema takes what only JSON can carry: an object, or a list of objects or lists. */
function needsJson(document: ApiDocument, schema: Block): boolean {
  const type = typeOf(schema);
  const items = type === 'array' ? choicesIn(document, document.block(schema.items)) : [];
  return type === 'object' || items.some((item) => /^(?:array|object)$/.test(String(typeOf(item))));
}

/** Returns how a value is sent outside JSON: a list by its style, as text, or one item of it. @throws Inexpressible */
function asText(document: ApiDocument, parameter: Block, schema: Block, lose: Lose): Sent {
  if (/^(?:label|matrix)$/.test(String(parameter.style)))
    throw new Inexpressible(`has the style "${parameter.style}", which no config has`);
  if (parameter.in === 'querystring') throw new Inexpressible('is a whole query string, which no config has');
  if (Object.keys(document.block(parameter.content)).length > 0) {
    lose('is given as text');
    return { schema: { type: 'string' } };
  }
  const choices = choicesIn(document, schema);
  const unfit = choices.find((choice) => needsJson(document, choice));
  const kind = unfit && typeOf(unfit) === 'array' ? 'a list of objects or lists' : 'an object';
  const fit = choices.filter((choice) => !needsJson(document, choice));
  if (unfit !== undefined && fit.every((choice) => choice.type === 'null'))
    throw new Inexpressible(`is ${kind}, which only JSON can carry`);
  if (fit.some((choice) => typeOf(choice) === 'file')) throw new Inexpressible('is a file');
  if (unfit !== undefined) lose(`may be ${kind}, which only JSON can carry`);
  const taken = unfit === undefined ? schema : { anyOf: fit };
  const list = fit.find((choice) => typeOf(choice) === 'array');
  if (list === undefined) return { schema: taken };
  const separator = separatorOf(document, parameter);
  const style = parameter.in === 'query' ? STYLES[separator] : undefined;
  if (style !== undefined) return { schema: taken, style };
  if (separator === '&') lose('is a list, of which one item can be sent');
  else lose(`is a list, given as text with "${separator}" between its items`);
  return { schema: separator === '&' ? document.block(list.items) : { type: 'string' } };
}

/** Returns the separator of a list's items. `&` means that each item is sent by itself. */
function separatorOf({ isSwagger }: ApiDocument, parameter: Block): string {
  const { style = 'form', explode = style === 'form', collectionFormat, in: place } = parameter;
  if (!isSwagger && explode && place !== 'header' && place !== 'path') return '&';
  return SEPARATORS.get(String(isSwagger ? collectionFormat : style)) ?? ',';
}
