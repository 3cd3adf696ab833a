import { isMap, isSeq, parseDocument, type Tags, type YAMLMap, type YAMLSeq } from 'yaml';
import type { Conversion, ImportedApi, ImportedEndpoint } from './convert.ts';
import { PREFIX } from './names.ts';
import { apiBlock, apiNode, endpointNode, variablesIn, yamlText } from './write.ts';

/**
 * Adds the parts of an import that a config lacks. Values, their order and comments stay; the layout is the YAML library's.
 * APIs are matched by URL; endpoints by method and path, or by name.
 * @param text the text of a valid config.
 * @returns the new text, and the number of endpoints that were added. `kept` has notes on parts that differ from the document but
 * stay, and on secrets that one more API would get.
 * @throws Error where a part cannot be added.
 */
export function merge(text: string, imported: Conversion) {
  const document = parseDocument(text, { customTags: asWritten });
  const apis = listOf(document.get('apis'), 'apis');
  const blocks = apis.items.filter(isMap);
  const names = new Set(blocks.map((block) => String(block.get('name')).toLowerCase()));
  const kept: string[] = [];
  let added = 0;
  for (const api of imported.apis) {
    const known = blocks.find((each) => String(each.get('url')).replace(/\/$/, '') === api.url);
    if (known === undefined && names.has(api.name.toLowerCase()))
      throw new Error(
        `the API ${api.name} has another URL than ${api.url}: give it with --url where it is the same API`,
      );
    kept.push(...(known === undefined ? sharedSecrets(api, text) : differences(known, api)));
    const block = known ?? apiNode(document, api);
    if (known === undefined) apis.add(block);
    const endpoints = listOf(block.get('endpoints'), `endpoints of ${block.get('name')}`);
    const missing = withoutKnown(endpoints, api.endpoints);
    for (const endpoint of missing) endpoints.add(endpointNode(document, endpoint));
    added += missing.length;
  }
  return { text: added === 0 ? text : yamlText(document), added, kept };
}

/** Keeps numbers as they are written. YAML may read an address as a number, which would lose digits and zeros. */
function asWritten(tags: Tags): Tags {
  return tags.map((tag) => {
    if (typeof tag === 'string' || tag.collection !== undefined || tag.test === undefined) return tag;
    const { stringify } = tag;
    return { ...tag, stringify: (item, ...rest) => item.source ?? stringify?.(item, ...rest) ?? String(item.value) };
  });
}

/** Returns a list whose items are on lines of their own, so that items can be added. */
function listOf(value: unknown, what: string): YAMLSeq {
  if (!isSeq(value)) throw new Error(`the ${what} cannot be added to: write them as a list there`);
  value.flow = false;
  return value;
}

/** Returns the endpoints that a list lacks. */
function withoutKnown(list: YAMLSeq, endpoints: readonly ImportedEndpoint[]): ImportedEndpoint[] {
  const known = list.items.filter(isMap);
  const names = new Set(known.map((each) => String(each.get('name')).toLowerCase()));
  const requests = new Set(known.map((each) => `${each.get('method') ?? 'GET'} ${each.get('path')}`));
  return endpoints.filter(
    ({ name, method = 'GET', path }) => !names.has(name.toLowerCase()) && !requests.has(`${method} ${path}`),
  );
}

function differences(block: YAMLMap, api: ImportedApi): string[] {
  const headers = block.get('headers');
  const has = Object.keys(isMap(headers) ? headers.toJSON() : {}).map((name) => name.toLowerCase());
  return Object.keys(apiBlock(api).headers ?? {})
    .filter((name) => !has.includes(name.toLowerCase()))
    .map((name) => `the API ${block.get('name')} has no header ${name}, which the document asks for`);
}

/** Returns notes on variables that are already in the file: names come from titles, so two documents may share them. */
function sharedSecrets(api: ImportedApi, text: string): string[] {
  const known = variablesIn(text);
  return variablesIn(JSON.stringify(apiBlock(api)))
    .filter((variable) => variable.startsWith(PREFIX) && known.includes(variable))
    .map(
      (variable) => `${variable} is in the file already, and would go to ${api.url}, too: rename it where it must not`,
    );
}
