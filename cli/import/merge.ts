import { isMap, isNode, isSeq, parseDocument, type YAMLMap, type YAMLSeq } from 'yaml';
import type { Imported, ImportedApi, ImportedEndpoint } from './convert.ts';
import { PREFIX, unique } from './names.ts';
import { apisText, indented, itemsText, variablesIn, variablesOf } from './write.ts';

export interface Merged {
  readonly text: string;
  readonly added: number;
  /** What stayed as the operator has it, where the document says something else, and secrets that one more API would get. */
  readonly kept: readonly string[];
}

interface Insertion {
  readonly at: number;
  readonly text: string;
}

/**
 * Adds to the text of a config what it does not have, and changes nothing that is there. An API is known by its URL, an endpoint
 * by its method and path, or by its name.
 * @param text of a config that can be read.
 * @throws Error where there is no place for it.
 */
export function merge(text: string, imported: Imported): Merged {
  const apis = seqOf(parseDocument(text).get('apis'), text, 'apis');
  const blocks = apis.items.filter(isMap);
  const names = new Set(blocks.map((block) => String(block.get('name')).toLowerCase()));
  const kept: string[] = [];
  const insertions: Insertion[] = [];
  const fresh: ImportedApi[] = [];
  let added = 0;
  for (const api of imported.apis) {
    const block = blocks.find((each) => String(each.get('url')).replace(/\/$/, '') === api.url);
    if (block === undefined && names.has(api.name.toLowerCase()))
      throw new Error(
        `the API ${api.name} has another URL than ${api.url}: give it with --url where it is the same API`,
      );
    if (block === undefined) {
      fresh.push(api);
      kept.push(...sharedSecrets(api, text));
    } else {
      const endpoints = seqOf(block.get('endpoints'), text, `endpoints of ${block.get('name')}`);
      const missing = withoutKnown(endpoints, api.endpoints);
      kept.push(...differences(block, api), ...goneFrom(imported, api, block, endpoints));
      added += missing.length;
      if (missing.length > 0) insertions.push(insertion(text, endpoints, itemsText(missing, imported)));
    }
  }
  added += fresh.reduce((sum, { endpoints }) => sum + endpoints.length, 0);
  if (fresh.length > 0) insertions.push(insertion(text, apis, apisText({ ...imported, apis: fresh })));
  // From the end, so that places before it stay right. Of two at one place the inner one comes first in the text.
  const last = insertions.toReversed().toSorted((one, other) => other.at - one.at);
  return { text: last.reduce((all, { at, text: more }) => all.slice(0, at) + more + all.slice(at), text), added, kept };
}

function seqOf(value: unknown, text: string, what: string): YAMLSeq {
  const isBlock = isSeq(value) && value.items.length > 0 && text.charAt(value.range?.[0] ?? 0) === '-';
  if (!isBlock) throw new Error(`the ${what} cannot be added to: write them with a line that begins with "-" for each`);
  return value;
}

/** Endpoints that a list does not have, with names that it does not have. */
function withoutKnown(list: YAMLSeq, endpoints: readonly ImportedEndpoint[]): ImportedEndpoint[] {
  const known = list.items.filter(isMap);
  const names = new Set(known.map((each) => String(each.get('name')).toLowerCase()));
  const requests = new Set(known.map((each) => `${each.get('method') ?? 'GET'} ${each.get('path')}`));
  return endpoints
    .filter(({ name, method = 'GET', path }) => !names.has(name.toLowerCase()) && !requests.has(`${method} ${path}`))
    .map((endpoint) => Object.assign(endpoint, { name: unique(endpoint.name, names) }));
}

function differences(block: YAMLMap, api: ImportedApi): string[] {
  const headers = block.get('headers');
  const has = Object.keys(isMap(headers) ? headers.toJSON() : {}).map((name) => name.toLowerCase());
  return Object.keys(api.headers)
    .filter((name) => !has.includes(name.toLowerCase()))
    .map((name) => `the API ${block.get('name')} has no header ${name}, which the document asks for`);
}

/** Endpoints of which the document says nothing; a path may have got a query. */
function goneFrom({ operations }: Imported, api: ImportedApi, block: YAMLMap, endpoints: YAMLSeq): string[] {
  const names = new Set(api.endpoints.map(({ name }) => name.toLowerCase()));
  return endpoints.items.filter(isMap).flatMap((each) => {
    const request = `${each.get('method') ?? 'GET'} ${String(each.get('path')).replace(/\?.*/s, '')}`;
    const isKnown = operations.has(request) || names.has(String(each.get('name')).toLowerCase());
    return isKnown ? [] : [`${block.get('name')}/${each.get('name')} (${request}) is not in the document, and stays`];
  });
}

/** Names of variables come from titles, so that a document can have those of another one. */
function sharedSecrets(api: ImportedApi, text: string): string[] {
  const known = variablesIn(text);
  return variablesOf([api])
    .filter((variable) => variable.startsWith(PREFIX) && known.includes(variable))
    .map(
      (variable) => `${variable} is in the file already, and would go to ${api.url}, too: rename it where it must not`,
    );
}

/** Where the next item of a list goes: behind the last one, and the comments that are indented as it is. */
function insertion(text: string, list: YAMLSeq, items: string): Insertion {
  const columnAt = (at: number) => at - (text.lastIndexOf('\n', at - 1) + 1);
  const column = columnAt(list.range?.[0] ?? 0);
  const last = list.items.at(-1);
  const end = (isNode(last) ? last.range?.[1] : undefined) ?? text.length;
  const rest = columnAt(end) > 0 ? '[^\\n]*\\n?' : '';
  const inside = new RegExp(`${rest}(?: {${column + 1},}#[^\\n]*\\n?)*`, 'y');
  inside.lastIndex = end;
  inside.test(text);
  const at = inside.lastIndex;
  const lead = at > 0 && text.charAt(at - 1) !== '\n' ? '\n' : '';
  return { at, text: `${lead}${indented(items, column)}` };
}
