/**
 * What the service and the process of an isolated plugin tell each other. A frame to the process is its length, the length
 * of its JSON, the JSON, and text that belongs to it. A frame to the service is its length, the token and JSON. Lengths are of
 * four bytes, the lowest first, and do not count themselves. Before its first frame the service sends the token.
 *
 * The token tells what the process's own code says from what its plugin writes into the same descriptor. It is no wall: a plugin
 * shares its process with that code, and somebody may find a way to speak for it. So the service bounds what all reports cost.
 */

/** Descriptors of the process, beside those that every process has. */
export const ORDERS = 3;
export const REPORTS = 4;
export const CLAIMS = 5;

/** Bytes of a frame. */
export const LONGEST_FRAME = 4 * 1024 * 1024;

/** Bytes that only frames of the process's own code begin with. */
export const TOKEN_BYTES = 16;

/** Bytes of the file of claims: the last call that was begun, and whether none may begin any more. */
export const RETIRED_AT = 8;
export const CLAIM_BYTES = 9;

/** What a value is, for checks of its shape in a process that does not have it. */
export type Sketch =
  | { readonly is: 'function' | 'class' | 'undefined' }
  | { readonly is: 'plain'; readonly value: string | number | boolean | null }
  | { readonly is: 'list'; readonly items?: readonly Sketch[] }
  | { readonly is: 'object'; readonly members: Readonly<Record<string, Sketch>> };

/** A schema as JSON: what it is made of is marked, since JSON drops what TypeBox hides in it. */
export type PackedSchema =
  | { readonly is: 'absent' }
  | { readonly is: 'parser' }
  | { readonly is: 'schema'; readonly packed: unknown }
  | { readonly is: 'problem'; readonly problem: string };

export type Order =
  | { readonly k: 'load' }
  | { readonly k: 'parse'; readonly value: unknown }
  | { readonly k: 'make'; readonly config: unknown }
  | {
      readonly k: 'call';
      readonly i: number;
      readonly h: string;
      readonly c: Readonly<Record<string, unknown>>;
      /** What the plugin has kept of the request. */
      readonly m?: object;
    }
  | { readonly k: 'abort'; readonly i: number }
  | { readonly k: 'ping' };

/** What was thrown, as text and in the parts that somebody looks at. */
export interface Thrown {
  readonly problem?: string;
  readonly message: string;
  readonly stack: string;
  /** Of validators that say where and what. */
  readonly issues?: readonly { readonly path: readonly unknown[]; readonly message: string }[];
}

/** Of a call: it has ended, was left to another process, or wants to hear of its abort. */
export type CallReport =
  | {
      readonly k: 'done';
      readonly i: number;
      readonly r?: unknown;
      readonly odd?: unknown;
      /** JSON text of the memo, where the hook has looked at it. */
      readonly m?: string | undefined;
    }
  | { readonly k: 'threw'; readonly i: number; readonly text?: string }
  | { readonly k: 'skipped'; readonly i: number }
  | { readonly k: 'watch'; readonly i: number };

export type Report =
  | CallReport
  | { readonly k: 'loaded'; readonly plugin: Sketch; readonly configSchema: PackedSchema; readonly keys: PackedSchema }
  | { readonly k: 'parsed' }
  | { readonly k: 'made'; readonly plugin: Sketch }
  | { readonly k: 'failed'; readonly error: Thrown }
  | { readonly k: 'pong' };
