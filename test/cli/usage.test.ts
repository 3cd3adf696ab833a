/** A wrong command line gets one line that says what would be right. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { launch, PACKAGE_ROOT, PROGRAM, runCli } from './run.ts';

const { version }: { version: string } = JSON.parse(await readFile(join(PACKAGE_ROOT, 'package.json'), 'utf8'));

describe('what is wrong on the command line is one line on stderr and exit code 1', () => {
  const missingConfig = 'missing required option -c, --config <file>';
  const noConfigValue = 'option `-c, --config <file>` value is missing';
  const cases: [string, string[], string][] = [
    [
      'no command',
      [],
      'missing command: one of start, generate-mnemonic, address, config validate, config schema, import, try, openapi, plugins, status, plugin new, verify, payments, identity',
    ],
    ['an empty command', [''], 'unknown command ""'],
    ['an unknown command', ['frobnicate'], 'unknown command "frobnicate"'],
    ['a command nearly known', ['strat'], 'unknown command "strat"; did you mean "start"?'],
    ['a name every object has', ['constructor'], 'unknown command "constructor"'],
    ['a command with a line feed', ['sta\nrt\u001b[2J'], 'unknown command "sta rt\\u001b[2J"'],
    ['half a command', ['config'], 'missing command: one of config validate, config schema'],
    ['half a command, with an option', ['plugin', '--dir', 'x'], 'missing command: one of plugin new'],
    ['a second word nearly known', ['config', 'validat'], 'missing command: one of config validate, config schema'],
    ['a second word alone', ['validate', '-c', 'x'], 'unknown command "validate"'],
    ['a command that is gone', ['ask', '--k', '2'], 'unknown command "ask"'],
    [
      'a payment that is not one',
      ['payments', 'show', '-c', 'a'],
      '"show" is no transaction hash and no nonce: 0x and 64 hex digits',
    ],
    [
      'a payment to release that is not named',
      ['payments', '--release', '-c', 'a'],
      'option --release needs a payment: write payments <tx|nonce> --release',
    ],
    ['a payer without a release', ['payments', '-c', 'a', '--payer', 'x'], 'option --payer needs --release'],
    ['force without a release', ['payments', '-c', 'a', '--force', '--reconcile'], 'option --force needs --release'],
    ['a chain without a reconciliation', ['payments', '-c', 'a', '--rpc', 'x'], 'option --rpc needs --reconcile'],
    [
      'a reconciliation that changes nothing, without it',
      ['payments', '-c', 'a', '--dry-run'],
      'option --dry-run needs --reconcile',
    ],
    [
      'a reconciliation of one payment',
      ['payments', `0x${'1'.repeat(64)}`, '-c', 'a', '--reconcile'],
      'option --reconcile takes no payment: it asks about all that are not known',
    ],
    [
      'a release and a reconciliation',
      ['payments', '-c', 'a', '--release', '--reconcile'],
      'only one of --release and --reconcile can be given',
    ],
    ['two words in one', ['config validate'], missingConfig],
    ['start without its config', ['start'], missingConfig],
    ['config validate without its config', ['config', 'validate', '--explain'], missingConfig],
    ['plugins without its config', ['plugins'], missingConfig],
    ['an option without its value at the end', ['start', '-c'], noConfigValue],
    ['an option without its value before another', ['start', '-c', '--env', 'x'], noConfigValue],
    ['an option with an empty value', ['start', '-c', ''], 'option -c, --config <file> needs a value'],
    [
      'an option without its value among several',
      ['start', '-c', 'x', '--env'],
      'option `--env <path>` value is missing',
    ],
    ['an option given twice', ['start', '-c', 'a', '-c', 'b'], 'option -c, --config <file> is given more than once'],
    [
      'an option given twice, by both names',
      ['start', '--config=a', '-c', 'b'],
      'option -c, --config <file> is given more than once',
    ],
    ['an unknown option', ['start', '-c', 'a', '--verbose'], 'Unknown option `--verbose`'],
    ['one that is near another', ['start', '--confg', 'a'], 'Unknown option `--confg`; did you mean "--config"?'],
    ['an unknown short option', ['start', '-x', '-c', 'a'], 'Unknown option `-x`'],
    ['a negated option', ['start', '--no-config'], noConfigValue],
    ['an option of another command', ['start', '-c', 'a', '--explain'], 'Unknown option `--explain`'],
    ['an option of a command without any', ['generate-mnemonic', '-c', 'a'], 'Unknown option `-c`'],
    ['an option named like a prototype', ['start', '--__proto__', 'a'], missingConfig],
    ['a dotted option', ['start', '--config.a', 'a'], 'option -c, --config <file> needs a value'],
    ['an argument too many', ['start', '-c', 'a', 'b'], 'Unused args: `b`'],
    ['an argument too many that is a number', ['start', '-c', 'a', '5'], 'Unused args: `5`'],
    ['a switch with a number', ['start', '-c', 'a', '--watch=1'], 'Unused args: `1`'],
    ['a number too many after --', ['start', '-c', 'a', '--', '5'], 'unexpected argument "5"'],
    ['an argument too many after --', ['start', '-c', 'a', '--', '-b'], 'unexpected argument "-b"'],
    ['an argument too many for two words', ['config', 'schema', 'x'], 'Unused args: `x`'],
    ['an argument too many behind an argument', ['verify', 'a', 'b'], 'Unused args: `b`'],
    ['a missing argument', ['verify', '--max-age', '5'], 'missing required args for command `verify <file|->`'],
    ['a missing argument of two words', ['plugin', 'new'], 'missing required args for command `plugin new <name>`'],
    ['a missing domain', ['identity'], 'missing required option -d, --domain <domain>'],
    ['a switch with a value', ['start', '-c', 'a', '--watch=yes'], 'Unused args: `yes`'],
  ];
  for (const [what, args, message] of cases) {
    it(what, async (t) => {
      assert.deepEqual(await runCli(t, args), { code: 1, signal: null, stdout: '', stderr: `error: ${message}\n` });
    });
  }
});

it('behind npm, which keeps options for itself, the line says how to write them', async (t) => {
  const typed = async (script: string, ...args: string[]) => {
    const npm = { cwd: PACKAGE_ROOT, env: { npm_lifecycle_event: script, INIT_CWD: '/' } };
    return (await runCli(t, args, npm)).stderr;
  };
  const missing = 'error: missing required option -c, --config <file>';
  const kept = 'npm keeps options that stand before --, write';
  assert.equal(await typed('start', 'start'), `${missing}: ${kept} npm start -- -c <file>\n`);
  assert.equal(await typed('cli', 'try', 'a/b'), `${missing}: ${kept} npm run -s cli -- try -c <file>\n`);
});

describe('option values stay as they were typed', () => {
  const address = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
  const cases: [string, string[], string][] = [
    ['a number with an exponent', ['address', '--env', '1e3'], '1e3'],
    ['hex', ['address', '--env', address], address],
    ['after =', ['address', '--env=007'], '007'],
    ['a dash alone', ['address', '--env', '-'], '-'],
    ['in short form', ['config', 'validate', '-c', '1e3'], '1e3'],
    ['after = in short form', ['config', 'validate', '-c=007'], '007'],
    ['before the command', ['--env', '007', 'address'], '007'],
  ];
  for (const [what, args, value] of cases) {
    it(what, async (t) => {
      const { stderr } = await runCli(t, args, { cwd: '/' });
      assert.equal(stderr, `error: /${value}: file not found\n`);
    });
  }
});

describe('--help and --version work everywhere', () => {
  const title = `signed-data-proxy/${version}`;

  it('lists the commands, the options and the variables', async (t) => {
    assert.deepEqual(await runCli(t, ['--help']), {
      code: 0,
      signal: null,
      stderr: '',
      stdout: `${title}

Usage:
  $ signed-data-proxy <command> [options]

Service:
  start                Start the service; SIGHUP reloads the config
  status               Print what a running service is and does, by the port of its metrics
  payments [tx|nonce]  Print open payments, or one; free one, or ask the chain about all

Config:
  config validate      Check a config file and print the ID of every endpoint
  config schema        Print the JSON Schema of the config file
  import <file|url>    Make a config of an OpenAPI document
  try <api/endpoint>   Ask an upstream once, and print what could be signed of its answer
  openapi              Print the OpenAPI document of the endpoints

Plugins:
  plugins              Print every stage with its failure policy and its plugins in order
  plugin new <name>    Write a new plugin and its test

Signer:
  generate-mnemonic    Print a new mnemonic, its private key and its address
  address              Print the signer's address
  identity             Print the DNS record that names the signer, or look it up

Answers:
  verify <file|->      Check the signature of a saved answer, or of one on stdin

Options:
  -v, --version  Display version number
  -h, --help     Display this message

Environment:
  SERVICE_MNEMONIC     BIP-39 mnemonic of the signer; wins over SERVICE_PRIVATE_KEY
  SERVICE_PRIVATE_KEY  Private key of the signer: 32 bytes of hex
  LOG_LEVEL            trace, debug, info, warn, error, fatal or silent (default: info)
  LOG_FORMAT           text or json (default: text)
  NO_COLOR             Switches colours off
  SERVICE_WATCHDOG     Seconds after which a service that hangs ends itself; 0: never (default: 30)
`,
    });
  });

  const configOption = '  -c, --config <file>  YAML config file\n';
  const envOption = '  --env <path>         Variables file (default: .env, where there is one)\n';
  const explainOption = '  --explain            Show the hashed text beside each endpoint ID\n';
  const jsonOption = '  --json               Print JSON, errors included\n';
  const helpOption = '  -h, --help           Display this message\n';
  const usages: [string, string, string][] = [
    [
      'start',
      'start',
      `${configOption}${envOption}  --watch              Reload the config when its file or the variables file changes
  --workers <n>        Processes that serve together (default: server.workers of the config, or 1)
${helpOption}`,
    ],
    [
      'import',
      'import <file|url>',
      `  --out <file>         Where to write it (default: stdout)
  --merge              Add to that file what it lacks, and leave the rest as it is
  --only <methods>     Such as GET or GET,POST
  --include <pattern>  Paths or names, in which * is any text
  --url <url>          The upstream, in place of its servers
${envOption}${jsonOption}${helpOption}`,
    ],
    [
      'try',
      'try <api/endpoint>',
      `${configOption}  --param <name=text>  A parameter of the request\n${envOption}${jsonOption}${helpOption}`,
    ],
    ['openapi', 'openapi', `${configOption}${envOption}${helpOption}`],
    [
      'plugin new',
      'plugin new <name>',
      '  --dir <folder>  Where to write it (default: here)\n  --kind <kind>   What it does, such as auth or route (default: hooks)\n  -h, --help      Display this message\n',
    ],
    [
      'payments',
      'payments [tx|nonce]',
      `${configOption}${envOption}  --release            Let that payment be used again
  --payer <address>    Whose payment, where several have this nonce
  --force              Also where its request may still be under way
  --reconcile          Ask the chain about settlements whose end is not known
  --rpc <network=url>  A node of the chain, such as eip155:84532=https://node.example
  --dry-run            Change nothing
${helpOption}`,
    ],
    [
      'identity',
      'identity',
      `  -d, --domain <domain>  Domain of the API; the record stands at _node.<domain>
  -c, --config <file>    YAML config file whose settings.signer it is (default: the key in the environment)
  --env <path>           Variables file (default: .env, where there is one)
  --check                Look the record up: it must name the signer
  --address <address>    Signer that the record must name
  --url <url>            Running service whose signer it must name
  --resolver <ip:port>   Instead of the system's resolver
  -h, --help             Display this message
`,
    ],
    [
      'status',
      'status',
      `  -c, --config <file>  YAML config file of the running service
  --url <url>          Where its metrics are, in place of -c
${envOption}${jsonOption}${helpOption}`,
    ],
    ['plugins', 'plugins', configOption + envOption + jsonOption + helpOption],
    ['config validate', 'config validate', configOption + envOption + explainOption + jsonOption + helpOption],
    ['config schema', 'config schema', '  -h, --help  Display this message\n'],
    ['generate-mnemonic', 'generate-mnemonic', '  -h, --help  Display this message\n'],
    [
      'verify',
      'verify <file|->',
      `  --node <address>     Signer that must have signed
  --endpoint-id <id>   Endpoint that must have answered
  --parameters <json>  What must have been asked; the answer needs a receipt
  --max-age <seconds>  Refuse an older answer
  --type <types>       Show the value as these types, such as int256
  -c, --config <file>  YAML config file that has the types and the defaults
${envOption}${jsonOption}${helpOption}`,
    ],
    [
      'address',
      'address',
      `  -c, --config <file>  YAML config file whose settings.signer it is (default: the key in the environment)
  --env <path>         Variables file (default: .env, where there is one)
  -h, --help           Display this message
`,
    ],
  ];
  for (const [command, usage, options] of usages) {
    it(`of ${command}`, async (t) => {
      const { code, stdout, stderr } = await runCli(t, [...command.split(' '), '-h']);
      assert.deepEqual([code, stderr], [0, '']);
      assert.equal(stdout, `${title}\n\nUsage:\n  $ signed-data-proxy ${usage}\n\nOptions:\n${options}`);
    });
  }

  it('version, of any command and of none', async (t) => {
    for (const args of [['-v'], ['start', '--version'], ['config', '-v'], ['plugin', 'new', 'x', '-v']]) {
      const ended = await runCli(t, args);
      assert.deepEqual([ended.code, ended.stderr], [0, ''], args.join(' '));
      assert.ok(ended.stdout.startsWith(`${title} ${process.platform}`), ended.stdout);
    }
  });

  it('help wins over wrong options', async (t) => {
    const { code, stderr } = await runCli(t, ['start', '--nonsense', '--help']);
    assert.deepEqual([code, stderr], [0, '']);
  });

  it('through the installed program', async (t) => {
    const { code, stdout } = await launch(t, PROGRAM, ['--version']).ended;
    assert.deepEqual([code, stdout.split(' ')[0]], [0, title]);
    const wrong = await launch(t, PROGRAM, ['config', 'validate', '-c', '1e3'], { cwd: '/' }).ended;
    assert.deepEqual(wrong, { code: 1, signal: null, stdout: '', stderr: 'error: /1e3: file not found\n' });
  });

  it('through npm', async (t) => {
    const asked = await launch(t, 'npm', ['run', 'cli', '--silent', '--', '--version'], { cwd: PACKAGE_ROOT }).ended;
    assert.deepEqual([asked.code, asked.stdout.split(' ')[0]], [0, title]);
  });
});
