import { dictionary, insert } from './members.ts';
import { keyOf, type LongContainer, type Part } from './parts.ts';
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
