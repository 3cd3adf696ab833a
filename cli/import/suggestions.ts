import { pathStep } from '../../lib/json/leaves.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible } from './left-out.ts';
import { jsonOf } from './media.ts';
import { literal } from './text.ts';

/** Suggestions for one endpoint, levels of an answer, and members that are looked at. */
const MOST = 4;
const MAX_DEPTH = 6;
const MAX_MEMBERS = 200;

/** What an operation answers, as far as that is said. */
export interface Answer {
  readonly type?: string | undefined;
  readonly schema?: unknown;
}

/** @throws Inexpressible where an answer is said to be no JSON. */
export function answerOf(document: ApiDocument, { block }: Operation): Answer {
  const responses = Object.entries(document.block(block.responses));
  const [, first] =
    responses.find(([status]) => /^2(?:\d\d|XX)$/i.test(status)) ??
    responses.find(([status]) => status === 'default') ??
    [];
  const response = document.block(first);
  const content = document.block(response.content);
  const types = document.isSwagger
    ? listOf(block.produces ?? document.root.produces).map(String)
    : Object.keys(content);
  const type = jsonOf(types);
  if (type === undefined && types.length > 0) {
    const named = types.slice(0, 3).map((each) => each.slice(0, 60));
    throw new Inexpressible(`answers in ${named.join(', ')}, not in JSON`);
  }
  if (document.isSwagger) return { type, schema: response.schema };
  return { type, schema: type === undefined ? undefined : document.block(content[type]).schema };
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
      const { type, properties, items, allOf, writeOnly } = followed(document, value);
      if (writeOnly === true) continue;
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
