import type { SimplePlugin } from '../../../plugins-sdk/define.ts';

/** The messages between the service and the process of an isolated plugin. Each is one line of JSON. */

/** File descriptors of the process, beside the three that every process has. */
export const ORDERS = 3;
export const REPORTS = 4;
/** Most characters of a line. */
export const LONGEST = 4 * 1024 * 1024;
/** Most characters of an error's message, and of its stack. */
export const LONGEST_TEXT = 16_384;

/** A plugin as far as the service has to know it: the names of its hooks, without their functions. */
export type PluginShape = Pick<SimplePlugin, 'name' | 'credentials'> & { readonly hooks: readonly string[] };

/** The exports of a plugin's module, as far as the service has to know them. */
export interface Shape {
  /** `undefined` if a factory makes the plugin. */
  readonly plugin?: PluginShape | undefined;
  readonly configSchema?: unknown;
  /** Whether `configSchema` is a validator with `parse`, which exists only in the plugin's process. */
  readonly parses?: boolean;
  readonly keys?: unknown;
}

/** An error that the plugin's process reports. */
export interface Thrown {
  /** Whether it is a fault of the plugin's shape, with a message of our own. */
  readonly problem: boolean;
  readonly message: string;
  readonly stack: string;
  readonly issues?: unknown;
}

/** What the plugin's process is to do. */
export type Task =
  | { readonly do: 'load' | 'abort' | 'ping' }
  | { readonly do: 'parse' | 'make'; readonly config: unknown }
  | {
      readonly do: 'call';
      readonly hook: string;
      /** The hook's context. A long answer of the upstream is in `text`, as JSON. */
      readonly context: Readonly<Record<string, unknown>>;
      /** JSON of the plugin's memo of the request, if there is one. */
      readonly memo: string | undefined;
      /** JSON of the answer; only `onResponseSent` has one. */
      readonly answer: string | undefined;
    };

/** A message to the plugin's process. */
export type Order = Task & { readonly i: number };

/** A message about the order with this number: it begins, or it has ended with this result. */
export interface Report {
  readonly i: number;
  readonly begins?: true;
  readonly threw?: Thrown;
  readonly done?: true;
  readonly ok?: unknown;
  readonly memo?: unknown;
}

/** Returns a function that splits incoming chunks into lines. It throws Error for a line that is too long. */
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
