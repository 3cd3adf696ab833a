import { errorText, unicodeEscape } from '../../../lib/text.ts';
import type { PublicEndpoint, PublicParameter, ReservedParameter } from '../endpoint.ts';
import { boundsOf, isLiteral, takesLists } from './schema.ts';

/** The value that a field adds to a request (JSON for a parameter, a text for a header, or nothing), or its fault. */
export type Content = { readonly value: string | undefined } | { readonly problem: string };

/** A part of a request with a control on the page. */
export interface Field {
  /** Identifies the text: fields with the same key share one. */
  readonly key: string;
  readonly name: string;
  readonly isHeader?: boolean;
  /** The place of the value in the upstream's request, or its purpose. */
  readonly kind: string;
  readonly required: boolean;
  readonly hints: readonly string[];
  readonly control: 'line' | 'code' | 'password' | 'lines';
  readonly placeholder?: string;
  /** The allowed values: each with the shown text and its JSON. */
  readonly choices?: readonly (readonly [shown: string, json: string])[];
  /** Common values. */
  readonly suggestions?: readonly string[];
  readonly read: (text: string) => Content;
}

/** Returns all fields of an endpoint that a person fills in. */
export function fieldsOf(endpoint: PublicEndpoint): Field[] {
  return [
    ...parameterFields(endpoint),
    ...endpoint.reserved.map((name) => reservedField(endpoint, name)),
    ...credentialFields(endpoint),
  ];
}

/** Returns the fields for parameters: one for each name, since a client gives one value to all of a name. */
function parameterFields({ id, parameters }: PublicEndpoint): Field[] {
  const names = [...new Set(parameters.map(({ name }) => name))];
  return names.map((name) => {
    const same = parameters.filter((parameter) => parameter.name === name);
    const required = same.some((parameter) => parameter.required);
    const places = same.map((parameter) => (parameter.in === 'none' ? 'not sent upstream' : parameter.in));
    const kind = [...new Set(places)].join(', ');
    return { key: `${id} parameter ${name}`, name, kind, required, ...controlOf(same) };
  });
}

type Control = Pick<Field, 'hints' | 'control' | 'placeholder' | 'choices' | 'read'>;

function controlOf(same: readonly PublicParameter[]): Control {
  const fallback = same.map((parameter) => parameter.default).find((value) => value !== undefined);
  const [schema = {}, ...others] = same.flatMap(({ schema }) => (schema === undefined ? [] : [schema]));
  const hints = [...same.flatMap(({ description }) => description ?? []), ...[schema, ...others].flatMap(boundsOf)];
  if (same.some((parameter) => parameter.in === 'body') || takesLists(schema)) {
    const note = 'As JSON: "text", 42, true, [1, 2] or {"a": 1}. Ctrl+Enter sends.';
    const placeholder = fallback === undefined ? '' : JSON.stringify(fallback);
    return { hints: [...hints, note], control: 'lines', placeholder, read: json };
  }
  if (Array.isArray(schema.enum)) {
    const choices = schema.enum.map((value) => [String(value), JSON.stringify(value)] as const);
    const none = fallback === undefined ? '' : `default: ${fallback}`;
    return { hints, control: 'line', choices: [[none, ''], ...choices], read: json };
  }
  const read = (text: string) => ({ value: isLiteral(schema, text) ? text : JSON.stringify(text) });
  return { hints, control: 'line', placeholder: String(fallback ?? ''), read };
}

const RESERVED: Readonly<Record<ReservedParameter, Pick<Field, 'hints' | 'placeholder' | 'suggestions'>>> = {
  _type: {
    hints: ['The Solidity type of the value, or of several values, comma-separated.'],
    placeholder: 'int256',
    suggestions: ['int256', 'uint256', 'bool', 'bytes32', 'address', 'string', 'bytes'],
  },
  _path: {
    hints: ['Where the value is in the upstream’s answer: a JSONPath such as $.a.b, or several, comma-separated.'],
    placeholder: '$.price',
  },
  _times: {
    hints: ['What an integer is multiplied by before it is encoded, such as 1e18; 1 changes nothing.'],
    placeholder: '1e18',
  },
};

function reservedField({ id }: PublicEndpoint, name: ReservedParameter): Field {
  const read = (text: string) => ({ value: JSON.stringify(text) });
  const key = `${id} parameter ${name}`;
  return { key, name, kind: 'encoding', required: true, control: 'code', ...RESERVED[name], read };
}

/** Returns a field for each header with credentials that a plugin describes. */
function credentialFields({ id, api, auth }: PublicEndpoint): Field[] {
  const open = auth.length > 1 ? ['Leave it empty to use another way in.'] : [];
  return auth.flatMap(({ title: kind, header: name, hints, example }): Field[] => {
    if (name === undefined) return [];
    const field = { name, isHeader: true, kind, required: false };
    if (example !== undefined) {
      const placeholder = JSON.stringify(example);
      const key = `${id} header ${name}`;
      return [{ ...field, key, hints: [...hints, ...open], control: 'lines', placeholder, read: jsonLine }];
    }
    // A JSON credential is a payment for one request. Only a key is good for the other endpoints of the API.
    const said = [...hints, 'For all endpoints of this API; never stored.', ...open];
    return [{ ...field, key: `api ${api} ${name}`, hints: said, control: 'password', read: headerText }];
  });
}

/** Reads JSON and keeps its text, so that numbers keep their digits. */
function json(text: string): Content {
  try {
    JSON.parse(text);
    return { value: text.trim() };
  } catch (error) {
    return { problem: `This is not valid JSON: ${errorText(error)}. A text needs quotation marks.` };
  }
}

/** Reads JSON into one line of ASCII, for a header. */
function jsonLine(text: string): Content {
  const content = json(text);
  if ('problem' in content) return content;
  return { value: JSON.stringify(JSON.parse(text)).replace(/[^\x20-\x7e]/g, unicodeEscape) };
}

/** Reads a text that a header can carry (RFC 9110, section 5.5) and browsers send. */
function headerText(text: string): Content {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return { value: text };
  return { problem: 'A header cannot carry this: there is a character that no key has.' };
}
