import { nearest } from '../lib/suggest.ts';

/** An option of a command. */
export interface OptionSpec {
  /** The option in help and errors, such as `-c, --config <file>`. Without a value in angle brackets it is a switch. */
  readonly flags: string;
  readonly long: string;
  readonly required?: boolean;
  /** Whether it can be given more than once. */
  readonly many?: boolean;
  readonly description: string;
}

/** Makes an option. @param flags its forms, such as `-c, --config <file>`. */
export function option(
  flags: string,
  description: string,
  more: Pick<OptionSpec, 'required' | 'many'> = {},
): OptionSpec {
  const [, long = ''] = /--([\w-]+)/.exec(flags) ?? [];
  return { flags, long, description, ...more };
}

/** A user's mistake on the command line. */
export class UsageError extends Error {}

/** The checked options of a command. */
export interface Given {
  /** The value of an option that the command requires. */
  value(name: string): string;
  optional(name: string): string | undefined;
  /** The values of an option that can be given more than once, in order. */
  all(name: string): readonly string[];
  flag(name: string): boolean;
}

/** Returns the text of an option, checked. @param rule the text for an error, after the option's name. @throws UsageError */
export function checkedOption(
  given: Given,
  name: string,
  isRight: (text: string) => boolean,
  rule: string,
): string | undefined {
  const text = given.optional(name);
  if (text === undefined || isRight(text)) return text;
  throw new UsageError(`option --${name} ${rule}`);
}

/** Checks that no option is given without the one that it needs. @param names the options that need it. @throws UsageError */
export function requireWith(given: Given, needed: string, names: readonly string[]): void {
  const odd = given.flag(needed) ? undefined : names.find((name) => given.flag(name));
  if (odd !== undefined) throw new UsageError(`option --${odd} needs --${needed}`);
}

/** The rule for options that take an address. */
export const ADDRESS_RULE = '<address> must be 0x and 40 hex digits, mixed-case only with the right checksum';

/** Returns `; did you mean "…"?` if one of the known words is close, else `''`. */
export function suggestion(typed: string, known: readonly string[]): string {
  const near = nearest(typed, known);
  return near === undefined ? '' : `; did you mean "${near}"?`;
}
