/** What the service and the process of an isolated plugin tell each other: a line of JSON each. */

/** Descriptors of the process, beside those that every process has. */
export const ORDERS = 3;
export const REPORTS = 4;
/** Characters of a line. */
export const LONGEST = 4 * 1024 * 1024;
/** Characters of what is thrown. */
export const LONGEST_TEXT = 16_384;

/** What a module exports, as far as the service has to know it. */
export interface Shape {
  /** Nothing where a factory makes the plugin. */
  readonly plugin?:
    | { readonly name: string; readonly hooks: readonly string[]; readonly credentials?: readonly string[] }
    | undefined;
  readonly configSchema?: unknown;
  /** Whether `configSchema` is a validator with `parse`, which only its own process can have. */
  readonly parses?: boolean;
  readonly keys?: unknown;
}

export interface Thrown {
  /** Whether it is a fault of the plugin's shape, in our own words. */
  readonly problem: boolean;
  readonly message: string;
  readonly stack: string;
  readonly issues?: unknown;
}

export type Order =
  | { readonly i: number; readonly do: 'load' }
  | { readonly i: number; readonly do: 'parse' | 'make'; readonly config: unknown }
  | {
      readonly i: number;
      readonly do: 'call';
      readonly hook: string;
      /** The data of a long answer of the upstream is its JSON, `text`. */
      readonly context: Readonly<Record<string, unknown>>;
      /** JSON of what it has kept of the request, if anything. */
      readonly memo: string | undefined;
      /** JSON; only `onResponseSent` has one. */
      readonly answer: string | undefined;
    }
  | { readonly i: number; readonly do: 'abort' | 'ping' };

/** Of the order with this number: that it begins, that it wants to hear of its abort, or else what came of it. */
export interface Report {
  readonly i: number;
  readonly begins?: true;
  readonly watches?: true;
  readonly threw?: Thrown;
  readonly done?: true;
  readonly ok?: unknown;
  readonly memo?: unknown;
}

/** @returns what splits each piece that comes into lines. It throws Error for a line that is too long. */
export function lineSplitter(): (text: string) => string[] {
  let rest = '';
  return (text) => {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? '';
    if (rest.length > LONGEST) throw new Error('it sent more than 4 MiB');
    return lines;
  };
}
