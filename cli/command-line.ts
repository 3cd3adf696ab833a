import { asTyped, packageVersion } from '../service/surroundings.ts';
import { print } from '../service/terminal.ts';
import { align } from '../service/text.ts';
import { checkOptions, type OptionSpec, option, readWords, suggestion, UsageError, type Words } from './arguments.ts';
import { type CommandSpec, commands, GROUPS, json } from './commands/table.ts';
import { withJsonOutput } from './json-output.ts';

const NAME = 'signed-data-proxy';

const help = option('-h, --help', 'Display this message');
const version = option('-v, --version', 'Display the version');
const everywhere = [help, version];

/**
 * Reads a command line and does what it asks for; resolves with the exit code.
 * @throws UsageError on what is wrong with it, before anything is done; and what the command itself throws.
 */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const words = readWords(argv, [...everywhere, ...commands.flatMap(({ options }) => options)]);
  const asked = (option: OptionSpec) => words.options.some(({ name }) => name === option.long);
  const found = findCommand(words.positionals);
  const { command, group } = found;
  if (asked(help)) return showHelp(group, command);
  if (asked(version)) return showVersion();
  const run = async () => runCommand(found, words);
  return asked(json) && command?.options.includes(json) ? withJsonOutput(run) : run();
}

function runCommand(found: Found, { options }: Words): Promise<number> {
  const { command, group, argument, surplus } = found;
  const cure = (missing: OptionSpec) => placed(found, missing, isConfigFile(argument) ? argument : surplus);
  const given = checkOptions(options, [...(command?.options ?? []), ...everywhere], cure);
  if (command === undefined) throw new UsageError(missingCommand(group));
  if (surplus !== undefined) {
    const meant = command.options.find(({ long }) => long === kindOf(surplus) && given.all(long).length === 0);
    throw new UsageError(`unexpected argument "${surplus}"${placed(found, meant, surplus)}`);
  }
  if (command.argument !== undefined && argument === undefined && !command.isOptional) {
    throw new UsageError(`missing argument <${command.argument}>`);
  }
  return command.run(given, argument ?? '');
}

const isConfigFile = (word = '') => /\.ya?ml$/.test(word);

/** The option that such a file belongs to. */
function kindOf(word: string): string | undefined {
  if (/\.env(?:\.\w+)?$/.test(word)) return 'env';
  return isConfigFile(word) ? 'config' : undefined;
}

/** How to write a word that stands without its option. */
function placed(
  { command, argument, surplus }: Found,
  option: OptionSpec | undefined,
  word: string | undefined,
): string {
  if (command === undefined || option?.value === undefined) return '';
  const flag = option.short === undefined ? `--${option.long}` : `-${option.short}`;
  const name = asTyped(command.name);
  const eaten =
    name === command.name ? '' : `: npm keeps options that stand before --, write ${name} ${flag} <${option.value}>`;
  if (word === undefined) return eaten;
  const others = [argument, surplus].filter((other) => other !== undefined && other !== word);
  const quoted = /\s/.test(word) ? `'${word}'` : word;
  return `: write ${[name, ...others, flag, quoted].join(' ')}`;
}

interface Found {
  /** Absent when the words name no command yet. */
  readonly command?: CommandSpec;
  /** The first word of a two-word command, or nothing. */
  readonly group: string;
  /** The word behind those of a command that takes one. */
  readonly argument?: string | undefined;
  readonly surplus?: string | undefined;
}

/** @throws UsageError when the words name no command and no group of commands. */
function findCommand(words: readonly string[]): Found {
  const [first, second] = words;
  if (first === undefined) return { group: '' };
  const single = commands.find(({ name }) => name === first);
  if (single !== undefined) return { command: single, group: '', ...operands(single, words.slice(1)) };
  const isGroup = commands.some(({ name }) => name.startsWith(`${first} `));
  if (isGroup && second === undefined) return { group: first };
  const typed = isGroup ? `${first} ${second}` : first;
  const double = commands.find(({ name }) => name === typed);
  if (double !== undefined) return { command: double, group: first, ...operands(double, words.slice(2)) };
  const known = commands.map(({ name }) => name).filter((name) => !isGroup || name.startsWith(`${first} `));
  throw new UsageError(
    `unknown command "${typed}"${suggestion(typed, known) || secondWords(words[isGroup ? 1 : 0] ?? '')}`,
  );
}

/** Finds the commands of two words whose second one was typed alone, or nearly. */
function secondWords(typed: string): string {
  const doubles = commands.map(({ name }) => name.split(' ')).filter(([, second]) => second !== undefined);
  const nearest = /"(.*)"/.exec(
    suggestion(
      typed,
      doubles.map(([, second = '']) => second),
    ),
  )?.[1];
  const names = doubles.filter(([, second]) => second === nearest).map((words) => `"${words.join(' ')}"`);
  return names.length === 0 ? '' : `; did you mean ${names.join(' or ')}?`;
}

function operands(command: CommandSpec, [first, second]: readonly string[]): Pick<Found, 'argument' | 'surplus'> {
  return command.argument === undefined ? { surplus: first } : { argument: first, surplus: second };
}

function missingCommand(group: string): string {
  const names = commands.map(({ name }) => name).filter((name) => group === '' || name.startsWith(`${group} `));
  return `missing command${group === '' ? '' : ` after "${group}"`}: one of ${names.join(', ')}`;
}

const environment = align([
  ['  SERVICE_MNEMONIC', 'BIP-39 mnemonic of the signer; wins over SERVICE_PRIVATE_KEY'],
  ['  SERVICE_PRIVATE_KEY', 'Private key of the signer: 32 bytes of hex'],
  ['  LOG_LEVEL', 'trace, debug, info, warn, error, fatal or silent (default: info)'],
  ['  LOG_FORMAT', 'text or json (default: text)'],
  ['  NO_COLOR', 'Switches colours off'],
  ['  SERVICE_WATCHDOG', 'Seconds after which a service that hangs ends itself; 0: never (default: 30)'],
]);

/** The commands, under those whom they help. */
function groups(): { title: string; body: string }[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return GROUPS.map((title) => {
    const rows = commands.filter(({ group }) => group === title);
    return { title, body: rows.map(({ name, description }) => `  ${name.padEnd(width)}  ${description}`).join('\n') };
  });
}

/** cac holds the table of commands and writes the help; `readWords` says why it does not read the command line. */
async function showHelp(group: string, chosen: CommandSpec | undefined): Promise<number> {
  const { cac } = await import('cac');
  const cli = cac(group === '' || chosen !== undefined ? NAME : `${NAME} ${group}`);
  for (const spec of commands) {
    if (chosen === undefined && group !== '' && !spec.name.startsWith(`${group} `)) continue;
    const name = chosen === undefined && group !== '' ? spec.name.slice(group.length + 1) : spec.name;
    const command = cli.command(name, spec.description).usage(usage(name, spec));
    for (const { flags, description } of spec.options) command.option(flags, description);
    if (spec === chosen) cli.matchedCommand = command;
  }
  cli.version(packageVersion());
  const isWhole = chosen === undefined && group === '';
  cli.help(([, ...sections]) => [
    { body: `${NAME}/${packageVersion()}` },
    ...sections
      .filter(({ title = '' }) => !title.startsWith('For more info'))
      .flatMap((section) => (isWhole && section.title === 'Commands' ? groups() : [section]))
      .map((section) => ({ ...section, body: section.body.replace(/ +$/gm, '') })),
    ...(isWhole ? [{ title: 'Environment', body: environment.join('\n') }] : []),
  ]);
  cli.outputHelp();
  await print('');
  return 0;
}

function usage(name: string, { argument, isOptional, options }: CommandSpec): string {
  const words = options.map((option) => {
    const text = `${option.short === undefined ? `--${option.long}` : `-${option.short}`}${option.value ? ` <${option.value}>` : ''}`;
    return `${option.required ? text : `[${text}]`}${option.many ? '…' : ''}`;
  });
  return [name, ...(argument === undefined ? [] : [isOptional ? `[<${argument}>]` : `<${argument}>`]), ...words].join(
    ' ',
  );
}

async function showVersion(): Promise<number> {
  await print(`${NAME}/${packageVersion()}\n`);
  return 0;
}
