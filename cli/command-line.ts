import { type CAC, cac } from 'cac';
import { asTyped, packageVersion } from '../service/surroundings.ts';
import { print, reserveStdout } from '../service/terminal.ts';
import { align } from '../service/text.ts';
import { type Given, type OptionSpec, suggestion, UsageError } from './arguments.ts';
import { type CommandSpec, commands, GROUPS } from './commands/table.ts';
import { withJsonOutput } from './json-output.ts';

const NAME = 'signed-data-proxy';
const VARIABLES = [
  ['  SERVICE_MNEMONIC', 'BIP-39 mnemonic of the signer; wins over SERVICE_PRIVATE_KEY'],
  ['  SERVICE_PRIVATE_KEY', 'Private key of the signer: 32 bytes of hex'],
  ['  LOG_LEVEL', 'trace, debug, info, warn, error, fatal or silent (default: info)'],
  ['  LOG_FORMAT', 'text or json (default: text)'],
  ['  NO_COLOR', 'Switches colours off'],
  ['  SERVICE_WATCHDOG', 'Seconds after which a service that hangs ends itself; 0: never (default: 30)'],
];

/** Runs a command; resolves with the exit code, unless that is 0. */
type Act = (spec: CommandSpec, given: Given, argument: string) => Promise<number | void>;

/**
 * Parses a command line and runs its command; resolves with the exit code.
 * @throws Error for a mistake in the command line, before anything is done; and the command's own errors.
 */
export async function runCommandLine(
  argv: readonly string[],
  act: Act = (spec, given, argument) => spec.run(given, argument),
): Promise<number> {
  const cli = program(act);
  cli.parse(['', '', ...together(argv, cli).map(marked)], { run: false });
  if (cli.options.version && cli.matchedCommandName !== undefined) cli.outputVersion();
  if (cli.options.help || cli.options.version) {
    await print('');
    return 0;
  }
  // By default cac does nothing for an unknown command, and reports success.
  if (cli.matchedCommand === undefined) throw new UsageError(unknownCommand(cli));
  if (cli.matchedCommandName !== 'start') reserveStdout();
  return cli.options.json && cli.matchedCommand.hasOption('json') ? withJsonOutput(() => run(cli)) : run(cli);
}

/** Runs the matched command. Adds advice to cac's errors for what it does not know, and removes the marks from its texts. */
async function run(cli: CAC): Promise<number> {
  try {
    return (await cli.runMatchedCommand()) ?? 0;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    error.message = error.message.replaceAll(MARK, '');
    const [, typed = '', file] =
      /^(?:Unknown option `(--.+)`|Unused args: `([^`]+\.ya?ml)`)$/.exec(error.message) ?? [];
    const known = cli.matchedCommand?.options.map(({ name }) => `--${name}`) ?? [];
    if (file !== undefined && known.includes('--config') && cli.options.config === undefined)
      error.message += `: write -c ${file}`;
    else if (typed !== '') error.message += suggestion(typed, known);
    throw error;
  }
}

function program(act: Act): CAC {
  const cli = cac(NAME);
  for (const spec of commands) {
    const command = cli.command(spec.usage, spec.description);
    for (const each of spec.options) command.option(each.flags, each.description);
    command.action(() => act(spec, givenTo(spec, cli), plain(cli.args[0])));
  }
  cli.version(packageVersion());
  cli.help((sections) => [
    ...sections
      .filter(({ title = '' }) => !title.startsWith('For more info'))
      .flatMap(({ title, body }) =>
        title === 'Commands' ? grouped() : [{ ...(title && { title }), body: body.replace(/ +$/gm, '') }],
      ),
    ...(cli.matchedCommand === undefined ? [{ title: 'Environment', body: align(VARIABLES).join('\n') }] : []),
  ]);
  return cli;
}

/** Returns a line for each command, in their groups. */
function grouped(): { title: string; body: string }[] {
  const lines = align(commands.map(({ usage, description }) => [`  ${usage}`, description]));
  const bodyOf = (title: string) => lines.filter((_, i) => commands[i]?.group === title).join('\n');
  return GROUPS.map((title) => ({ title, body: bodyOf(title) }));
}

/** Joins the two words of a command, because cac takes only one word as a command. */
function together(words: readonly string[], cli: CAC): readonly string[] {
  const first = words.slice(0, 2).join(' ');
  return cli.commands.some(({ name }) => name === first) ? [first, ...words.slice(2)] : words;
}

const MARK = '\u0001';

/** Marks a word that cac would parse as a number, such as an address, or as an option, such as `-`. */
function marked(typed: string): string {
  // cac knows `-c=FILE`, and takes each letter of `-cFILE` for an option, as it should those of a mistaken `-config`.
  const word = typed.replace(/^-(?!config$|domain$)[cd](?=[^=])/, '$&=');
  const [, name = '', value = ''] = /^(-{1,2}[\w-]+=)?(.*)$/s.exec(word) ?? [];
  return value === '-' || Number.isFinite(Number(value)) ? `${name}${MARK}${value}` : word;
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value.replace(MARK, '') : '';
}

function unknownCommand({ args, commands: known }: CAC): string {
  const [first] = args.map(plain);
  const names = known.map(({ name }) => name);
  const begun = names.filter((name) => first === undefined || name.startsWith(`${first} `));
  if (begun.length > 0) return `missing command: one of ${begun.join(', ')}`;
  const meant = names.find((name) => name.endsWith(` ${first}`)) ?? String(first);
  return `unknown command "${first}"${suggestion(meant, names)}`;
}

/** Returns the checked options. @throws UsageError for what cac accepts: an empty argument; an option missing, repeated or empty. */
function givenTo(spec: CommandSpec, { args, options, rawArgs, matchedCommandName = '' }: CAC): Given {
  const valuesOf = (long: string) => {
    const name = long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    return [options[name]].flat().filter((value) => value !== undefined && value !== false);
  };
  for (const { flags, long, many, required } of spec.options) {
    const values = valuesOf(long);
    // cac merges the short and the long name of an option, so the typed words are counted, too.
    const typed = rawArgs.filter((word) => flags.match(/-[\w-]+/g)?.includes(word.replace(/=.*/s, '')));
    if (Math.max(values.length, typed.length) > 1 && !many)
      throw new UsageError(`option ${flags} is given more than once`);
    if (flags.includes('<') && values.some((value) => plain(value) === ''))
      throw new UsageError(`option ${flags} needs a value`);
    if (required && values.length === 0)
      throw new UsageError(`missing required option ${flags}${cure(flags, matchedCommandName)}`);
  }
  const [surplus] = options['--'];
  if (surplus !== undefined) throw new UsageError(`unexpected argument "${surplus}"`);
  if (args.map(plain).includes(''))
    throw new UsageError(`argument ${spec.usage.replace(/^[a-z ]+/, '')} needs a value`);
  return {
    value: (name) => plain(valuesOf(name)[0]),
    optional: (name) => valuesOf(name).map(plain)[0],
    all: (name) => valuesOf(name).map(plain),
    flag: (name) => valuesOf(name).length > 0,
  };
}

/** Returns advice for an option that npm may have taken for itself, because it was typed before `--`. */
function cure(flags: OptionSpec['flags'], command: string): string {
  const typed = asTyped(command);
  if (typed === command) return '';
  return `: npm keeps options that stand before --, write ${typed} ${flags.replace(/, --\S+/, '')}`;
}
