import type { Json } from '../plugins-sdk/kernel.ts';
import type { Status } from '../plugins-sdk/status.ts';

/** What one set of plugins shows of itself. */
export class StatusParts implements Status {
  readonly #parts = new Map<string, (() => Json)[]>();

  show(part: string, read: () => Json): void {
    const readers = this.#parts.get(part);
    if (readers === undefined) this.#parts.set(part, [read]);
    else readers.push(read);
  }

  read(): ReturnType<Status['read']> {
    return Object.fromEntries([...this.#parts].map(([part, readers]) => [part, partOf(readers)]));
  }
}

function partOf([first, ...others]: readonly (() => Json)[]): Json {
  if (first === undefined) return null;
  return others.length === 0 ? readable(first) : [first, ...others].flatMap(readable);
}

/** A part that cannot be read is a text that says so: operators need the others all the more. */
function readable(read: () => Json): Json {
  try {
    const value = read();
    return JSON.stringify(value) === undefined ? null : value;
  } catch {
    return 'cannot be shown';
  }
}
