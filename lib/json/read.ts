import { canonicalList } from './alike.ts';
import { canonicalJson } from './canonical-json.ts';
import { dictionary, insert } from './members.ts';
import { keyOf, LongContainer, type Part } from './parts.ts';
import { sorted } from './sort.ts';
import { STEP, type Steps } from './turns.ts';
import type { Json } from './value.ts';

/** Reads long arrays and objects part by part, for texts of which JSON.parse could hold the event loop for too long. */
export class PartsReader {
  readonly #bytes: Buffer;
  #unyielded = 0;

  /** @param bytes valid JSON without numbers beyond doubles that count */
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The value that JSON.parse makes of it. */
  *value({ isArray, parts }: LongContainer): Steps<Json> {
    const items: Json[] = [];
    const members = dictionary<Json>();
    for (const part of parts) {
      yield* this.#giveWay(part.to - part.from);
      const { inner } = part;
      if (inner !== undefined) {
        const value = yield* this.value(inner);
        if (isArray) items.push(value);
        else insert(members, this.#keyOf(part), value);
      } else if (isArray) for (const item of this.#items(part)) items.push(item);
      else for (const [key, value] of this.#members(part)) insert(members, key, value);
    }
    return isArray ? items : members;
  }

  /** What `canonicalJson` writes of that value, without making all of it at once. */
  *canonical({ isArray, parts }: LongContainer): Steps<string> {
    return isArray ? yield* this.#canonicalArray(parts) : yield* this.#canonicalObject(parts);
  }

  *#canonicalArray(parts: readonly Part[]): Steps<string> {
    const texts: string[] = [];
    for (const part of parts) {
      yield* this.#giveWay(part.to - part.from);
      const { inner } = part;
      texts.push(inner === undefined ? canonicalList(this.#items(part)).slice(1, -1) : yield* this.canonical(inner));
    }
    return `[${texts.join(',')}]`;
  }

  *#canonicalObject(parts: readonly Part[]): Steps<string> {
    // Of duplicate keys the last counts: what is written before all are known may be wrong, or no canonical JSON.
    const members = new Map<string, Json | LongContainer>();
    for (const part of parts) {
      yield* this.#giveWay(part.to - part.from);
      if (part.inner !== undefined) members.set(this.#keyOf(part), part.inner);
      else for (const [key, value] of this.#members(part)) members.set(key, value);
    }
    const texts: string[] = [];
    for (const key of yield* sorted([...members.keys()])) {
      const member = members.get(key);
      const text = member instanceof LongContainer ? yield* this.canonical(member) : canonicalJson(member);
      texts.push(`${canonicalJson(key)}:${text}`);
      yield* this.#giveWay(key.length + text.length);
    }
    return `{${texts.join(',')}}`;
  }

  #keyOf({ from, to }: Part): string {
    return keyOf(this.#bytes, from, to);
  }

  #items({ from, to }: Part): Json[] {
    return JSON.parse(`[${this.#bytes.toString('utf8', from, to)}]`);
  }

  #members({ from, to }: Part): readonly [string, Json][] {
    return Object.entries(JSON.parse(`{${this.#bytes.toString('utf8', from, to)}}`));
  }

  *#giveWay(length: number): Steps<void> {
    this.#unyielded += length;
    if (this.#unyielded < STEP) return;
    this.#unyielded = 0;
    yield;
  }
}
