import { asTyped, packageVersion } from '../service/surroundings.ts';
import { print } from '../service/terminal.ts';
import { align } from '../service/text.ts';
import { checkOptions, type OptionSpec, option, readWords, suggestion, UsageError } from './arguments.ts';
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
  const { words, options } = readWords(argv, [...everywhere, ...commands.flatMap((command) => command.options)]);
  const found = findCommand(words);
  const { command } = found;
  const asked = ({ long }: OptionSpec) => options.some(({ name }) => name === long);
  if (asked(help) || asked(version)) {
    await print(asked(help) ? helpText(found) : `${title()}\n`);
    return 0;
  }
  const run = async () => {
    const specs = [...(command?.options ?? []), ...everywhere];
    const given = checkOptions(options, specs, (missing) => cure(missing, command?.name));
    if (command === undefined) throw new UsageError(missingCommand(found));
    return command.run(given, argumentOf(command, found.rest));
  };
  return asked(json) && command?.options.includes(json) ? withJsonOutput(run) : run();
}

/** npm keeps options that stand before `--`. */
function cure({ flags }: OptionSpec, name = ''): string {
  const typed = asTyped(name);
  if (typed === name) return '';
  return `: npm keeps options that stand before --, write ${typed} ${flags.replace(/, --\S+/, '')}`;
}

/** @throws UsageError for a word too many or too few. */
function argumentOf({ argument, isOptional }: CommandSpec, words: readonly string[]): string {
  const surplus = words[argument === undefined ? 0 : 1];
  if (surplus !== undefined) throw new UsageError(`unexpected argument "${surplus}"`);
  const [word] = words;
  if (argument !== undefined && word === undefined && !isOptional)
    throw new UsageError(`missing argument <${argument}>`);
  return word ?? '';
}

interface Found {
  /** Absent when the words name no command yet. */
  readonly command?: CommandSpec;
  /** The commands that the words may begin. */
  readonly listed: readonly CommandSpec[];
  /** The words behind those of the command; without a command the first one, if any. */
  readonly rest: readonly string[];
}

/** @throws UsageError when the words name no command and no group of commands. */
function findCommand(words: readonly string[]): Found {
  for (const count of [2, 1]) {
    const command = commands.find(({ name }) => name === words.slice(0, count).join(' '));
    if (command !== undefined) return { command, listed: [command], rest: words.slice(count) };
  }
  const [first, second] = words;
  const listed = commands.filter(({ name }) => first === undefined || name.startsWith(`${first} `));
  if (second === undefined && listed.length > 0) return { listed, rest: words };
  const typed = listed.length > 0 ? `${first} ${second}` : `${first}`;
  const known = (listed.length > 0 ? listed : commands).map(({ name }) => name);
  throw new UsageError(`unknown command "${typed}"${suggestion(typed, known)}`);
}

function missingCommand({ listed, rest: [group] }: Found): string {
  const after = group === undefined ? '' : ` after "${group}"`;
  return `missing command${after}: one of ${listed.map(({ name }) => name).join(', ')}`;
}

const environment = [
  ['SERVICE_MNEMONIC', 'BIP-39 mnemonic of the signer; wins over SERVICE_PRIVATE_KEY'],
  ['SERVICE_PRIVATE_KEY', 'Private key of the signer: 32 bytes of hex'],
  ['LOG_LEVEL', 'trace, debug, info, warn, error, fatal or silent (default: info)'],
  ['LOG_FORMAT', 'text or json (default: text)'],
  ['NO_COLOR', 'Switches colours off'],
  ['SERVICE_WATCHDOG', 'Seconds after which a service that hangs ends itself; 0: never (default: 30)'],
];

const title = () => `${NAME}/${packageVersion()}`;

/** The help of a command, or of the commands that are listed, under those whom they help. */
function helpText({ command, listed }: Found): string {
  const members = command === undefined ? listed : [];
  const groups = GROUPS.map((group) => {
    const rows = members.filter((each) => each.group === group).map(({ name, description }) => [name, description]);
    return [group, rows] as const;
  });
  const options = [...(command?.options ?? [version]), help];
  const sections = [
    ['Usage', [[`$ ${NAME} ${command === undefined ? '<command> [options]' : usageOf(command)}`]]],
    ...groups,
    ['Options', options.map(({ flags, description }) => [flags, description])],
    ['Environment', listed.length === commands.length ? environment : []],
  ] as const;
  const texts = sections
    .filter(([, rows]) => rows.length > 0)
    .map(([name, rows]) => [`${name}:`, ...align(rows).map((line) => `  ${line}`)].join('\n'));
  return `${[title(), ...texts].join('\n\n')}\n`;
}

function usageOf({ name, argument, isOptional, options }: CommandSpec): string {
  const words = options.map(({ flags, required, many }) => {
    const text = flags.replace(/, --[\w-]+/, '');
    return `${required ? text : `[${text}]`}${many ? '…' : ''}`;
  });
  const argumentWords = argument === undefined ? [] : [isOptional ? `[<${argument}>]` : `<${argument}>`];
  return [name, ...argumentWords, ...words].join(' ');
}
