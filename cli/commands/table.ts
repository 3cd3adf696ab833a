import { type Given, type OptionSpec, option } from '../arguments.ts';

/** The groups of commands in the help, in their order. */
export const GROUPS = ['Service', 'Config', 'Plugins', 'Signer', 'Answers'] as const;

/** A command. Its code is imported when it runs, so that the help is quick. */
export interface CommandSpec {
  /** Its name of one or two words, and its argument: `<one>` that it needs, or `[one]` that may be left out. */
  readonly usage: string;
  readonly group: (typeof GROUPS)[number];
  readonly description: string;
  readonly options: readonly OptionSpec[];
  /** Does the work. Resolves with the exit code, unless that is 0. */
  run(given: Given, argument: string): Promise<number | void>;
}

/** Makes the option for a config file. @param description the command's use of it. */
const configOf = (description: string) => option('-c, --config <file>', description);
const config = option('-c, --config <file>', 'YAML config file', { required: true });
const signerConfig = configOf('YAML config file whose settings.signer it is (default: the key in the environment)');
const answerConfig = configOf('YAML config file that has the types and the defaults');
const metricsConfig = configOf('YAML config file of the running service');

const env = option('--env <path>', 'Variables file (default: .env, where there is one)');
/** The option for output that programs read; see `withJsonOutput`. */
const json = option('--json', 'Print JSON, errors included');
const explain = option('--explain', 'Show the hashed text beside each endpoint ID');
const watch = option('--watch', 'Reload the config when its file or the variables file changes');
const workers = option('--workers <n>', 'Processes that serve together (default: server.workers of the config, or 1)');
const node = option('--node <address>', 'Signer that must have signed');
const endpointId = option('--endpoint-id <id>', 'Endpoint that must have answered');
const parameters = option('--parameters <json>', 'What must have been asked; the answer needs a receipt');
const maxAge = option('--max-age <seconds>', 'Refuse an older answer');
const type = option('--type <types>', 'Show the value as these types, such as int256');
const param = option('--param <name=text>', 'A parameter of the request', { many: true });
const metricsUrl = option('--url <url>', 'Where its metrics are, in place of -c');
const dir = option('--dir <folder>', 'Where to write it (default: here)');
const kind = option('--kind <kind>', 'What it does, such as auth or route (default: hooks)');
const domain = option('-d, --domain <domain>', 'Domain of the API; the record stands at _node.<domain>', {
  required: true,
});
const address = option('--address <address>', 'Signer that the record must name');
const url = option('--url <url>', 'Running service whose signer it must name');

const importOptions = [
  option('--out <file>', 'Where to write it (default: stdout)'),
  option('--merge', 'Add to that file what it lacks, and leave the rest as it is'),
  option('--only <methods>', 'Such as GET or GET,POST', { many: true }),
  option('--include <pattern>', 'Paths or names, in which * is any text', { many: true }),
  option('--url <url>', 'The upstream, in place of its servers'),
];

const release = option('--release', 'Let that payment be used again');
const reconcile = option('--reconcile', 'Ask the chain about settlements whose end is not known');
const check = option('--check', 'Look the record up: it must name the signer');
const force = option('--force', 'Also where its request may still be under way');
const payer = option('--payer <address>', 'Whose payment, where several have this nonce');
const rpc = option('--rpc <network=url>', 'A node of the chain, such as eip155:84532=https://node.example');
const dryRun = option('--dry-run', 'Change nothing');

/** All commands, in the order of the help within their groups. */
export const commands: readonly CommandSpec[] = [
  {
    usage: 'start',
    group: 'Service',
    description: 'Start the service; SIGHUP reloads the config',
    options: [config, env, watch, workers],
    run: async (given) => (await import('./start.ts')).start(given),
  },
  {
    usage: 'generate-mnemonic',
    group: 'Signer',
    description: 'Print a new mnemonic, its private key and its address',
    options: [],
    run: async () => (await import('./generate-mnemonic.ts')).generateMnemonic(),
  },
  {
    usage: 'address',
    group: 'Signer',
    description: "Print the signer's address",
    options: [signerConfig, env],
    run: async (given) => (await import('./address.ts')).address(given),
  },
  {
    usage: 'config validate',
    group: 'Config',
    description: 'Check a config file and print the ID of every endpoint',
    options: [config, env, explain, json],
    run: async (given) => (await import('./config-validate.ts')).validateConfig(given),
  },
  {
    usage: 'config schema',
    group: 'Config',
    description: 'Print the JSON Schema of the config file',
    options: [],
    run: async () => (await import('./config-schema.ts')).printSchema(),
  },
  {
    usage: 'import <file|url>',
    group: 'Config',
    description: 'Make a config of an OpenAPI document',
    options: [...importOptions, env, json],
    run: async (given, source) => (await import('./import.ts')).importOpenApi(given, source),
  },
  {
    usage: 'try <api/endpoint>',
    group: 'Config',
    description: 'Ask an upstream once, and print what could be signed of its answer',
    options: [config, param, env, json],
    run: async (given, name) => (await import('./try.ts')).tryOnce(given, name),
  },
  {
    usage: 'openapi',
    group: 'Config',
    description: 'Print the OpenAPI document of the endpoints',
    options: [config, env],
    run: async (given) => (await import('./openapi.ts')).printOpenApi(given),
  },
  {
    usage: 'plugins',
    group: 'Plugins',
    description: 'Print every stage with its failure policy and its plugins in order',
    options: [config, env, json],
    run: async (given) => (await import('./plugins.ts')).printPlugins(given),
  },
  {
    usage: 'status',
    group: 'Service',
    description: 'Print what a running service is and does, by the port of its metrics',
    options: [metricsConfig, metricsUrl, env, json],
    run: async (given) => (await import('./status.ts')).printStatus(given),
  },
  {
    usage: 'plugin new <name>',
    group: 'Plugins',
    description: 'Write a new plugin and its test',
    options: [dir, kind],
    run: async (given, name) => (await import('./plugin-new.ts')).newPlugin(given, name),
  },
  {
    usage: 'verify <file|->',
    group: 'Answers',
    description: 'Check the signature of a saved answer, or of one on stdin',
    options: [node, endpointId, parameters, maxAge, type, answerConfig, env, json],
    run: async (given, file) => (await import('./verify.ts')).verify(given, file),
  },
  {
    usage: 'payments [tx|nonce]',
    group: 'Service',
    description: 'Print open payments, or one; free one, or ask the chain about all',
    options: [config, env, release, payer, force, reconcile, rpc, dryRun],
    run: async (given, id) => (await import('./payments.ts')).payments(given, id),
  },
  {
    usage: 'identity',
    group: 'Signer',
    description: 'Print the DNS record that names the signer, or look it up',
    options: [domain, signerConfig, env, check, address, url],
    run: async (given) => (await import('./identity.ts')).identity(given),
  },
];
