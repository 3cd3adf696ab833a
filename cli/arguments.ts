import { parseArgs } from 'node:util';
import { closest, distance } from 'fastest-levenshtein';

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

/** The command line, read but not yet checked against a command. */
export interface Words {
  /** What is no option, in order. */
  readonly positionals: readonly string[];
  readonly options: readonly GivenOption[];
}

interface GivenOption {
  readonly name: string;
  /** As typed, such as `-c`. */
  readonly typed: string;
  readonly value: string | undefined;
  readonly inline: boolean;
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

/**
 * Splits a command line into options and other words. cac's own parser is not used. It makes numbers of values
 * (`-c 1e3`, `--node 0x70…`), ignores what follows `--`, and takes an option given twice for a list.
 * @param known every option of every command.
 */
export function readWords(argv: readonly string[], known: readonly OptionSpec[]): Words {
  const options = Object.fromEntries(
    known.map(({ long, short, value }) => [
      long,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        ...(short === undefined ? {} : { short }),
      },
    ]),
  );
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true });
  const read: { positionals: string[]; options: GivenOption[] } = { positionals: [], options: [] };
  for (const token of tokens) {
    if (token.kind === 'positional') read.positionals.push(token.value);
    if (token.kind === 'option') read.options.push(givenOption(token));
  }
  return read;
}

type OptionToken = { name: string; rawName: string; value: string | undefined; inlineValue: boolean | undefined };

function givenOption({ name, rawName: typed, value, inlineValue }: OptionToken): GivenOption {
  // `-c=file` means what `--config=file` means.
  const text = inlineValue && !typed.startsWith('--') ? value?.replace(/^=/, '') : value;
  return { name, typed, value: text, inline: inlineValue ?? false };
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
    const spec = specs.find(({ long }) => long === option.name);
    if (spec === undefined) throw new UsageError(`unknown option "${option.typed}"${didYouMean(option.typed, specs)}`);
    const before = values.get(spec.long) ?? [];
    if (before.length > 0 && !spec.many) throw new UsageError(`option ${spec.flags} is given more than once`);
    values.set(spec.long, [...before, readValue(option, spec)]);
  }
  const missing = specs.find(({ long, required }) => required && !values.has(long));
  if (missing !== undefined) throw new UsageError(`missing required option ${missing.flags}${cure(missing)}`);
  return {
    value: (name) => {
      const [value] = values.get(name) ?? [];
      if (value === undefined) throw new Error(`option --${name} is not required`);
      return value;
    },
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

/** @param pattern of the digits. @throws UsageError */
export function numberOption(given: Given, name: string, pattern: RegExp, rule: string): number | undefined {
  const text = checkedOption(given, name, (digits) => pattern.test(digits), rule);
  return text === undefined ? undefined : Number(text);
}

export function maxAgeOption(given: Given): number | undefined {
  return numberOption(given, 'max-age', /^\d{1,15}$/, '<seconds> must be a whole number');
}

function readValue(option: GivenOption, spec: OptionSpec): string {
  if (spec.value === undefined) {
    if (option.value !== undefined) throw new UsageError(`option ${spec.flags} takes no value`);
    return '';
  }
  const { value, inline } = option;
  const swallowed = !inline && value !== undefined && value.length > 1 && value.startsWith('-');
  if (value === undefined || value === '' || swallowed) throw new UsageError(`option ${spec.flags} needs a value`);
  return value;
}

function didYouMean(typed: string, specs: readonly OptionSpec[]): string {
  return suggestion(
    typed,
    specs.map(({ long }) => `--${long}`),
  );
}

/** `; did you mean "…"?` where one of the known words is close, else nothing. */
export function suggestion(typed: string, known: readonly string[]): string {
  if (known.length === 0 || typed.length > 64) return '';
  const nearest = closest(typed, known);
  return distance(typed, nearest) <= Math.max(2, nearest.length / 3) ? `; did you mean "${nearest}"?` : '';
}
