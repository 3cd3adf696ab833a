import { Document, isMap, isSeq, Scalar, stringify, visit, type YAMLMap } from 'yaml';
import { unicodeEscape } from '../../lib/text/unicode-escape.ts';
import type { Imported, ImportedApi, ImportedEndpoint } from './convert.ts';

/** Characters of a line. */
const WIDTH = 120;
/** A text in double quotes stays in its line: the line may be a comment. */
const STYLE = { lineWidth: WIDTH, singleQuote: true, doubleQuotedMinMultiLineLength: 1e9 } as const;
/** What a terminal would obey, and YAML takes as it is in a text without quotes. */
const OBEYED = /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;
const VARIABLE = /(?<!\$)\$\{(\w+)\}/g;

/** The variables that an imported config needs. */
export function variablesOf(apis: readonly ImportedApi[]): string[] {
  return variablesIn(JSON.stringify(apis));
}

/** The variables that a text refers to. */
export function variablesIn(text: string): string[] {
  return [...new Set([...text.matchAll(VARIABLE)].map(([, name = '']) => name))].sort();
}

/** A whole config file. */
export function fileText(imported: Imported): string {
  return `${headOf(imported)}version: '1.0'\napis:\n${indented(apisText(imported), 2)}`;
}

/** Each line further to the right; what else JavaScript takes for the end of a line is none in YAML. */
export function indented(text: string, columns: number): string {
  return text.replace(/(?<![^\n])(?=[^\n])/g, ' '.repeat(columns));
}

/** The items of a list of APIs, without indentation. */
export function apisText(imported: Imported): string {
  const apis = imported.apis.map(({ name, url, headers, oauth2, auth, endpoints }) => {
    const credentials = { ...(Object.keys(headers).length > 0 && { headers }), ...(oauth2 && { oauth2 }) };
    return { name, url, ...credentials, auth, endpoints };
  });
  const document = new Document(apis, { aliasDuplicateObjects: false });
  for (const [index, api] of imported.apis.entries()) {
    const auth = document.getIn([index, 'auth'], true);
    if (isMap(auth)) auth.flow = true;
    styleEndpoints(document.getIn([index, 'endpoints']), api.endpoints, imported);
  }
  return yamlText(document);
}

/** The items of a list of endpoints, without indentation. */
export function itemsText(endpoints: readonly ImportedEndpoint[], imported: Imported): string {
  const document = new Document(endpoints, { aliasDuplicateObjects: false });
  styleEndpoints(document.contents, endpoints, imported);
  return yamlText(document);
}

/** A document whose text can be shown by a terminal: escapes mean the same in double quotes. */
function yamlText(document: Document): string {
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === 'string' && node.value.search(OBEYED) !== -1) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return shown(document.toString(STYLE));
}

function shown(text: string): string {
  return text.replace(OBEYED, unicodeEscape);
}

function headOf({ title, apis, remarks }: Imported): string {
  const variables = variablesOf(apis);
  const lines = [
    `${title}, from its OpenAPI document. An endpoint signs the whole answer until it has an encoding:`,
    'take one of those below it, or look for a value with `signed-data-proxy try API/ENDPOINT -c FILE`.',
    ...(variables.length === 0 ? [] : [`Variables: ${variables.join(', ')}`]),
    ...[...remarks].map((remark) => `Note: ${remark}`),
  ];
  return shown(lines.map((line) => `# ${line}\n`).join(''));
}

function styleEndpoints(list: unknown, endpoints: readonly ImportedEndpoint[], { suggestions }: Imported): void {
  for (const [index, endpoint] of endpoints.entries()) {
    const node = isSeq(list) ? list.items[index] : undefined;
    if (!isMap(node)) continue;
    const parameters = node.get('parameters');
    if (isSeq(parameters)) for (const item of parameters.items) if (isMap(item)) styleParameter(item);
    const found = suggestions.get(endpoint) ?? [];
    if (found.length > 0) node.comment = found.map((encoding) => ` encoding: ${flow(encoding)}`).join('\n');
  }
}

/** One line for a parameter, where that is not too long. */
function styleParameter(item: YAMLMap): void {
  const isLong = flow(item.toJSON()).length > WIDTH - 20;
  item.flow = !isLong;
  const schema = item.get('schema');
  if (isLong && isMap(schema) && flow(schema.toJSON()).length <= WIDTH - 20) schema.flow = true;
}

/** A value in one line of YAML, whatever is in it. */
function flow(value: unknown): string {
  return stringify(value, { ...STYLE, lineWidth: 0, collectionStyle: 'flow' }).trim();
}
