import { parseArgs } from 'node:util';
import { nearest } from '../lib/text/suggest.ts';

/** An option of a command. */
export interface OptionSpec {
  /** As help and errors show it, such as `-c, --config <file>`. */
  readonly flags: string;
  readonly short?: string;
  readonly long: string;
  /** What to call its value in texts; without it the option is a switch. */
  readonly value?: string;
  readonly required?: boolean;
  /** Whether it can be given more than once. */
  readonly many?: boolean;
  readonly description: string;
}

/** @param flags as help shows them; without a value in angle brackets it is a switch. */
export function option(
  flags: string,
  description: string,
  more: Pick<OptionSpec, 'required' | 'many'> = {},
): OptionSpec {
  const [, short, long = '', value] = /^(?:-(\w), )?--([\w-]+)(?: <(.+)>)?$/.exec(flags) ?? [];
  return { flags, long, description, ...(short && { short }), ...(value && { value }), ...more };
}

/** What a user got wrong on the command line. */
export class UsageError extends Error {}

/** An option as it was typed. */
interface GivenOption {
  readonly name: string;
  /** As typed, such as `-c`. */
  readonly rawName: string;
  readonly value?: string | undefined;
  /** Whether the value is in the same word. */
  readonly inlineValue?: boolean | undefined;
}

/** The checked options of a command. */
export interface Given {
  /** The value of an option that the command requires. */
  value(name: string): string;
  optional(name: string): string | undefined;
  /** The values of an option that can be given more than once, in order. */
  all(name: string): readonly string[];
  flag(name: string): boolean;
}

/** Splits a command line. @param known every option of every command, so that options may stand anywhere. */
export function readWords(argv: readonly string[], known: readonly OptionSpec[]) {
  const options = Object.fromEntries(
    known.map(({ long, short, value }) => [
      long,
      { type: value === undefined ? ('boolean' as const) : ('string' as const), ...(short && { short }) },
    ]),
  );
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true });
  return {
    words: tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : [])),
    options: tokens.flatMap((token): GivenOption[] => (token.kind === 'option' ? [token] : [])),
  };
}

/**
 * Holds options against those of a command.
 * @param cure what is said behind an option that is missing.
 * @throws UsageError on the first that is unknown, repeated, without its value or with one too many, or missing.
 */
export function checkOptions(
  given: readonly GivenOption[],
  specs: readonly OptionSpec[],
  cure: (missing: OptionSpec) => string = () => '',
): Given {
  const values = new Map<string, string[]>();
  for (const option of given) {
    const { name, rawName } = option;
    const spec = specs.find(({ long }) => long === name);
    if (spec === undefined) {
      const known = specs.map(({ long }) => `--${long}`);
      throw new UsageError(`unknown option "${rawName}"${suggestion(rawName, known)}`);
    }
    const before = values.get(name) ?? [];
    if (before.length > 0 && !spec.many) throw new UsageError(`option ${spec.flags} is given more than once`);
    values.set(name, [...before, readValue(option, spec)]);
  }
  const missing = specs.find(({ long, required }) => required && !values.has(long));
  if (missing !== undefined) throw new UsageError(`missing required option ${missing.flags}${cure(missing)}`);
  return {
    value: (name) => values.get(name)?.[0] ?? '',
    optional: (name) => values.get(name)?.[0],
    all: (name) => values.get(name) ?? [],
    flag: (name) => values.has(name),
  };
}

/** @param rule what is said, behind the name of the option, of a text that is not right. @throws UsageError */
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

/** @param names options that mean nothing without the switch. @throws UsageError */
export function requireWith(given: Given, needed: string, names: readonly string[]): void {
  if (given.flag(needed)) return;
  const odd = names.find((name) => given.flag(name));
  if (odd !== undefined) throw new UsageError(`option --${odd} needs --${needed}`);
}

/** What an option must be that takes an address. */
export const ADDRESS_RULE = '<address> must be 0x and 40 hex digits, mixed-case only with the right checksum';

function readValue({ rawName, value, inlineValue }: GivenOption, { flags, value: what }: OptionSpec): string {
  if (what === undefined) {
    if (value !== undefined) throw new UsageError(`option ${flags} takes no value`);
    return '';
  }
  const isNextOption = !inlineValue && value !== undefined && value.length > 1 && value.startsWith('-');
  if (value === undefined || value === '' || isNextOption) throw new UsageError(`option ${flags} needs a value`);
  // `-c=file` means what `--config=file` means.
  return inlineValue && !rawName.startsWith('--') ? value.replace(/^=/, '') : value;
}

/** `; did you mean "…"?` where one of the known words is close, else nothing. */
export function suggestion(typed: string, known: readonly string[]): string {
  const near = nearest(typed, known);
  return near === undefined ? '' : `; did you mean "${near}"?`;
}
