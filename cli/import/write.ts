import { type Document, isMap, isSeq, Scalar, stringify, visit, type YAMLMap } from 'yaml';
import { unicodeEscape } from '../../lib/text.ts';
import type { Conversion, ImportedApi, ImportedEndpoint } from './convert.ts';

/** The most characters of a parameter's line. */
const WIDTH = 120;
/** YAML style. Texts in double quotes are never broken, since their line may be a comment. */
const STYLE = { singleQuote: true, doubleQuotedMinMultiLineLength: 1e9 } as const;
/** Matches characters that control a terminal, and that YAML allows without quotes. */
const OBEYED = /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;
const VARIABLE = /(?<!\$)\$\{(\w+)\}/g;
/** The auth for clients: an API that uses the operator's credentials must not be open to everyone. */
const AUTH = { type: 'apiKey', keys: ['$' + '{CLIENT_KEY}'] };

/** Returns the variables that a text refers to. */
export function variablesIn(text: string): string[] {
  return [...new Set([...text.matchAll(VARIABLE)].map(([, name = '']) => name))].sort();
}

/** Returns an API in the form of the config file, with the credentials of its endpoints. */
export function apiBlock({ name, url, endpoints }: ImportedApi) {
  const schemes = endpoints.flatMap((endpoint) => endpoint.schemes);
  const headers = Object.fromEntries(schemes.flatMap((scheme) => Object.entries(scheme.headers ?? {})));
  const { oauth2 } = schemes.find((scheme) => scheme.oauth2 !== undefined) ?? {};
  const credentials = { ...(Object.keys(headers).length > 0 && { headers }), ...(oauth2 && { oauth2 }) };
  return { name, url, ...credentials, auth: AUTH, endpoints: endpoints.map(endpointBlock) };
}

function endpointBlock({ schemes, suggestions, ...block }: ImportedEndpoint) {
  return block;
}

/** Makes an item of the list of APIs, without endpoints. */
export function apiNode(document: Document, api: ImportedApi): YAMLMap {
  const node = mapOf(document, { ...apiBlock(api), endpoints: [] });
  const ways = node.get('auth');
  if (isMap(ways)) ways.flow = true;
  return node;
}

/** Makes an item of the list of endpoints, with suggested encodings as comments. */
export function endpointNode(document: Document, endpoint: ImportedEndpoint): YAMLMap {
  const node = mapOf(document, endpointBlock(endpoint));
  const parameters = node.get('parameters');
  if (isSeq(parameters)) for (const item of parameters.items) if (isMap(item)) styleParameter(item);
  if (endpoint.parameters.length === 0) node.delete('parameters');
  const suggestions = endpoint.suggestions.map((encoding) => ` encoding: ${flow(encoding)}`);
  if (suggestions.length > 0) node.comment = suggestions.join('\n');
  return node;
}

function mapOf(document: Document, value: object): YAMLMap {
  return document.createNode(value, { aliasDuplicateObjects: false }) as YAMLMap;
}

/** Returns a document's text, with characters that control a terminal escaped, and no line broken. */
export function yamlText(document: Document): string {
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === 'string' && node.value.search(OBEYED) !== -1) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return shown(document.toString({ ...STYLE, lineWidth: 0 }));
}

function shown(text: string): string {
  return text.replace(OBEYED, unicodeEscape);
}

/** Returns a config without APIs, with notes on an import at its head. */
export function emptyText({ title, apis, remarks }: Conversion): string {
  const variables = variablesIn(JSON.stringify(apis.map(apiBlock)));
  const lines = [
    `${title}, from its OpenAPI document. An endpoint signs the whole answer until it has an encoding:`,
    'take one of those below it, or look for a value with `signed-data-proxy try API/ENDPOINT -c FILE`.',
    ...(variables.length === 0 ? [] : [`Variables: ${variables.join(', ')}`]),
    ...[...remarks].map((remark) => `Note: ${remark}`),
  ];
  return shown(`${lines.map((line) => `# ${line}\n`).join('')}version: '1.0'\napis: []\n`);
}

/** Puts a parameter on one line, unless that is too long. */
function styleParameter(item: YAMLMap): void {
  const isLong = flow(item.toJSON()).length > WIDTH - 20;
  item.flow = !isLong;
  const schema = item.get('schema');
  if (isLong && isMap(schema) && flow(schema.toJSON()).length <= WIDTH - 20) schema.flow = true;
}

/** Returns a value as one line of YAML. */
function flow(value: unknown): string {
  return stringify(value, { ...STYLE, lineWidth: 0, collectionStyle: 'flow' }).trim();
}
