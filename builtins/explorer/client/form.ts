import type { Access, PageData } from '../data.ts';
import type { PublicEndpoint, PublicParameter, ReservedParameter } from '../endpoint.ts';
import type { ServiceRequest } from './call.ts';
import { element } from './dom.ts';
import { areaControl, type Content, controlText, type Field, field, jsonOf, textControl } from './fields.ts';
import type { Keys } from './keys.ts';
import { boundsOf, choiceControl, typed } from './schema.ts';

/** A request, and how what it asked for is encoded. */
export interface Asked extends ServiceRequest {
  /** The types of the values, where the answer is encoded. */
  readonly types?: string;
  readonly times?: string;
  /** Where the upstream's answer has the values. */
  readonly paths?: string;
  /** What a receipt must cover, where the endpoint makes receipts. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

export interface RequestForm {
  readonly element: HTMLFormElement;
  readonly stop: HTMLButtonElement;
  /** The request as far as it is filled in; its credentials are left empty. */
  current(): Asked;
}

/** The parts of a request body: names and JSON. */
interface Part {
  readonly name: string;
  readonly field: Field<string>;
}

/** The form of an endpoint; `submit` gets what it makes, once nothing is wrong with it. */
export function requestForm(
  endpoint: PublicEndpoint,
  ways: PageData['auth'],
  keys: Keys,
  submit: (asked: Asked) => void,
): RequestForm {
  const parts = [...parameterParts(endpoint.parameters), ...endpoint.reserved.map(reservedPart)];
  const credentials = credentialParts(endpoint, ways, keys);
  const send = element('button', { type: 'submit', class: 'send' }, 'Send request');
  const stop = element('button', { type: 'button', class: 'quiet', hidden: '' }, 'Stop');
  const form = element(
    'form',
    { novalidate: '', autocomplete: 'off' },
    ...(parts.length > 0 ? [] : [element('p', { class: 'hint' }, 'This endpoint takes no parameters.')]),
    ...[...parts, ...credentials].map((part) => part.field.element),
    element('div', { class: 'actions' }, send, stop),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const body = readAll(parts);
    const headers = readAll(credentials);
    const wrong = [...parts, ...credentials].find(({ field }) => 'problem' in field.read());
    if (wrong !== undefined || body === undefined || headers === undefined) return;
    submit(askedOf(endpoint, body, headers));
  });
  const current = () =>
    askedOf(
      endpoint,
      given(parts),
      credentials.map(({ name }) => [name, ''] as const),
    );
  return { element: form, stop, current };
}

type Members = readonly (readonly [name: string, text: string])[];

function askedOf(endpoint: PublicEndpoint, body: Members, headers: Members): Asked {
  const parameters = objectOf(body);
  return {
    endpointId: endpoint.id,
    body: `{"parameters":${parameters}}`,
    headers: Object.fromEntries(headers),
    ...encodingOf(endpoint, new Map(body)),
    ...coveredOf(endpoint, JSON.parse(parameters)),
  };
}

/** The text of an object whose members are JSON. */
function objectOf(members: Members): string {
  return `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`;
}

/** What is there of the values, by name. */
function given(parts: readonly Part[]): (readonly [name: string, value: string])[] {
  return parts.flatMap(({ name, field }) => {
    const content = field.read();
    return 'value' in content && content.value !== undefined ? [[name, content.value] as const] : [];
  });
}

/** What was given, by name; complains of every part that is wrong, and goes to the first of them. */
function readAll(parts: readonly Part[]): (readonly [name: string, value: string])[] | undefined {
  const contents = parts.map((part) => ({ ...part, content: part.field.read() }));
  for (const { field, content } of contents.toReversed()) {
    if ('problem' in content) field.complain(content.problem);
    else field.forgive();
  }
  return contents.some(({ content }) => 'problem' in content) ? undefined : given(parts);
}

/** What was chosen where the operator left it open. */
function encodingOf(
  { encoding }: PublicEndpoint,
  given: ReadonlyMap<string, string>,
): Pick<Asked, 'types' | 'times' | 'paths'> {
  if (encoding === undefined) return {};
  const chosen = (pinned: string | undefined, name: ReservedParameter) => {
    const json = pinned === '*' ? given.get(name) : undefined;
    const value: unknown = json === undefined ? pinned : JSON.parse(json);
    return typeof value === 'string' ? value : undefined;
  };
  const types = chosen(encoding.type, '_type');
  const times = chosen(encoding.times, '_times');
  const paths = chosen(encoding.path, '_path');
  return { ...(types && { types }), ...(times && { times }), ...(paths && { paths }) };
}

/** What the service fills in where nothing was given, and what was. */
function coveredOf({ receipt, reserved, parameters }: PublicEndpoint, given: object): Pick<Asked, 'parameters'> {
  if (receipt === undefined) return {};
  const defaults = parameters.flatMap(({ name, default: fallback }): [string, unknown][] =>
    fallback === undefined ? [] : [[name, fallback]],
  );
  const known = new Set<string>([...receipt, ...reserved]);
  const all = [...defaults, ...Object.entries(given)];
  return { parameters: Object.fromEntries(all.filter(([name]) => known.has(name))) };
}

/** A client gives one value to all parameters of one name. */
function parameterParts(parameters: readonly PublicParameter[]): Part[] {
  const names = [...new Set(parameters.map(({ name }) => name))];
  return names.map((name) => {
    const same = parameters.filter((parameter) => parameter.name === name);
    const places = [...new Set(same.map((parameter) => parameter.in))];
    const required = same.some((parameter) => parameter.required);
    const fallback = same.map((parameter) => parameter.default).find((value) => value !== undefined);
    const inBody = places.includes('body');
    const hints = same.flatMap(({ description }) => (description === undefined ? [] : [description]));
    const hint = fallback === undefined ? {} : { placeholder: inBody ? JSON.stringify(fallback) : String(fallback) };
    const schemas = same.flatMap(({ schema }) => (schema === undefined ? [] : [schema]));
    const [schema = {}] = schemas;
    const listed = !inBody && Array.isArray(schema.enum) ? choiceControl(schema.enum, fallback) : undefined;
    const control = listed ?? (inBody ? areaControl({ ...hint, class: 'code' }) : textControl(hint));
    const note = 'As JSON: "text", 42, true, [1, 2] or {"a": 1}. Ctrl+Enter sends.';
    return {
      name,
      field: field<string>({
        label: name,
        kind: places.join(', '),
        required,
        hints: [...hints, ...schemas.flatMap(boundsOf), ...(inBody ? [note] : [])],
        control,
        read: () => {
          // The options of a list are JSON already.
          if (inBody || listed !== undefined) return jsonOf(control, required);
          return typed(schema, controlText(control, required));
        },
      }),
    };
  });
}

const TYPES = ['int256', 'uint256', 'bool', 'bytes32', 'address', 'string', 'bytes'];
const SEVERAL = 'several';

function reservedPart(name: ReservedParameter): Part {
  if (name === '_type') return typePart();
  const hints = {
    _path: 'Where the value is in the upstream’s answer: a JSONPath such as $.a.b, or several, comma-separated.',
    _times: 'What an integer is multiplied by before it is encoded, such as 1e18; 1 changes nothing.',
  };
  const control = textControl({ class: 'code', placeholder: name === '_path' ? '$.price' : '1e18' });
  const read = () => typed({}, controlText(control, true));
  return {
    name,
    field: field<string>({ label: name, kind: 'encoding', required: true, hints: [hints[name]], control, read }),
  };
}

function typePart(): Part {
  const control = element(
    'select',
    {},
    ...TYPES.map((type) => element('option', { value: type }, type)),
    element('option', { value: SEVERAL }, 'several types…'),
  );
  const list = textControl({
    class: 'code',
    placeholder: 'uint256,string',
    'aria-label': 'Types, comma-separated',
    hidden: '',
  });
  control.addEventListener('change', () => {
    list.hidden = control.value !== SEVERAL;
    if (!list.hidden) list.focus();
  });
  const hints = ['The Solidity type of the value, or of several values.'];
  const read = () => typed({}, controlText(control.value === SEVERAL ? list : control, true));
  return {
    name: '_type',
    field: field<string>({ label: '_type', kind: 'encoding', required: true, hints, control, more: list, read }),
  };
}

/** A field for each header that carries credentials, as far as plugins say which. */
function credentialParts({ api, auth }: PublicEndpoint, ways: PageData['auth'], keys: Keys): Part[] {
  const open = auth.length > 1 ? [' Leave it empty to use another way in.'] : [];
  return [...new Set(auth)].flatMap((type) => {
    const way = ways[type];
    return way?.header === undefined
      ? []
      : [credentialPart(way.header, way, open, (key) => keys.join(`${way.header} ${api}`, key))];
  });
}

/** What a header can carry (RFC 9110, section 5.5), as far as browsers send it. */
const HEADER_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/;

function credentialPart(
  name: string,
  { title, hints, example }: Access,
  open: readonly string[],
  join: (key: HTMLInputElement) => void,
): Part {
  const key = textControl({ type: 'password', class: 'code' });
  // What is JSON pays for one request: only a key is good for the others of its API.
  if (example === undefined) join(key);
  const control = example === undefined ? key : areaControl({ class: 'code', placeholder: JSON.stringify(example) });
  const notes = example === undefined ? [...hints, 'For all endpoints of this API; never stored.'] : hints;
  const all = [...notes.slice(0, -1), [...notes.slice(-1), ...open].join('')];
  const read = () =>
    example === undefined ? headerText(controlText(control, false)) : jsonLine(jsonOf(control, false));
  return { name, field: field<string>({ label: name, kind: title, hints: all, control, read }) };
}

function headerText(content: Content<string>): Content<string> {
  const fits = !('value' in content) || content.value === undefined || HEADER_TEXT.test(content.value);
  return fits ? content : { problem: 'A header cannot carry this: there is a character that no key has.' };
}

/** JSON in one line of ASCII, for a header. */
function jsonLine(content: Content<string>): Content<string> {
  if (!('value' in content) || content.value === undefined) return content;
  const line = JSON.stringify(JSON.parse(content.value));
  return { value: line.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`) };
}
