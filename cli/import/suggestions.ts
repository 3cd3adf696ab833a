import { pathStep } from '../../lib/json/leaves.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { type ApiDocument, type Block, listOf, type Operation } from './document.ts';
import { Inexpressible } from './left-out.ts';
import { jsonOf } from './media.ts';

/** The most suggestions for one endpoint, and members of an answer that are searched. */
const MOST = 4;
const MAX_MEMBERS = 200;

export type Answer = ReturnType<typeof answerOf>;

/** Returns media type and schema of an operation's answer, if the document has them. @throws Inexpressible if it is not JSON. */
export function answerOf(document: ApiDocument, { block }: Operation) {
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

/** Returns encodings for the numbers in an answer, those nearest to its root first. @throws Inexpressible for a broken reference. */
export function suggestionsOf(document: ApiDocument, schema: unknown): Block[] {
  const found: Block[] = [];
  const queue: (readonly [path: string, schema: unknown])[] = [['$', schema]];
  // The loop also visits items that are added to the queue while it runs.
  for (const [path, value] of queue) {
    const { type, properties, items, allOf, writeOnly } = document.block(value);
    if (writeOnly === true) continue;
    const types = [type].flat();
    if (types.includes('integer')) found.push({ type: 'int256', path });
    else if (types.includes('number')) found.push({ type: 'int256', path, times: '1e18' });
    if (found.length === MOST) break;
    const add = (at: string, each: unknown) => {
      if (queue.length < MAX_MEMBERS) queue.push([at, each]);
    };
    if (isRecord(properties))
      for (const [name, member] of Object.entries(properties)) add(path + pathStep(name), member);
    if (isRecord(items)) add(`${path}[0]`, items);
    for (const part of listOf(allOf)) add(path, part);
  }
  return found;
}
