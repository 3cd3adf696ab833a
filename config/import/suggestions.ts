import { pathStep } from '../../plugins-sdk/lib/json/leaves.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible } from './left-out.ts';
import { isJson } from './parameters.ts';
import { literal } from './text.ts';

/** Suggestions for one endpoint, levels of an answer, and members that are looked at. */
const MOST = 4;
const MAX_DEPTH = 6;
const MAX_MEMBERS = 200;

/** The schema of what an operation answers. @throws Inexpressible where that is said, and is no JSON. */
export function answerOf(document: ApiDocument, { block }: Operation): unknown {
  const responses = Object.entries(document.block(block.responses));
  const [, first] =
    responses.find(([status]) => /^2(?:\d\d|XX)$/i.test(status)) ??
    responses.find(([status]) => status === 'default') ??
    [];
  const response = document.block(first);
  const types = document.isSwagger
    ? listOf(block.produces ?? document.root.produces).map(String)
    : Object.keys(document.block(response.content));
  const json = types.find(isJson);
  if (types.length > 0 && json === undefined)
    throw new Inexpressible(
      `answers in ${types
        .slice(0, 3)
        .map((type) => type.slice(0, 60))
        .join(', ')}, not in JSON`,
    );
  if (document.isSwagger) return response.schema;
  return json === undefined ? undefined : document.block(document.block(response.content)[json]).schema;
}

/** Encodings of the numbers in an answer, those nearest to its top first. */
export function suggestionsOf(document: ApiDocument, schema: unknown): Block[] {
  const found: Block[] = [];
  let level: [path: string, schema: unknown][] = [['$', schema]];
  let looked = 0;
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const next: typeof level = [];
    for (const [path, value] of level) {
      if (found.length === MOST || ++looked > MAX_MEMBERS) return found;
      const { type, properties, items, allOf } = followed(document, value);
      const types = [type].flat();
      if (types.includes('integer')) found.push({ type: 'int256', path });
      else if (types.includes('number')) found.push({ type: 'int256', path, times: '1e18' });
      if (isRecord(properties))
        for (const [name, inner] of Object.entries(properties)) next.push([path + literal(pathStep(name)), inner]);
      if (isRecord(items)) next.push([`${path}[0]`, items]);
      for (const part of listOf(allOf)) next.push([path, part]);
    }
    level = next;
  }
  return found;
}

/** A broken reference in an answer says nothing against the request. */
function followed(document: ApiDocument, value: unknown): Block {
  try {
    return document.block(value);
  } catch (error) {
    if (error instanceof Inexpressible) return {};
    throw error;
  }
}
