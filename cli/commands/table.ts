import { type Given, type OptionSpec, option } from '../arguments.ts';
import { param } from './param-option.ts';

/** A command; what it does is imported when it runs, so that help is quick. */
export interface CommandSpec {
  /** One or two words. */
  readonly name: string;
  /** What to call its one argument in texts, for a command that takes one and needs it. */
  readonly argument?: string;
  readonly description: string;
  readonly options: readonly OptionSpec[];
  /** Does the work and resolves with the exit code. */
  run(given: Given, argument: string): Promise<number>;
}

/** The config file, as a command uses it. */
const configOf = (description: string) => option('-c, --config <file>', description);
const config = option('-c, --config <file>', 'YAML config file', { required: true });
const signerConfig = configOf('YAML config file whose settings.signer it is (default: the key in the environment)');
const answerConfig = configOf('YAML config file that has the types and the defaults');
const metricsConfig = configOf('YAML config file of the running service');
const recordConfig = configOf('YAML config file whose settings.audit.path it is');
const namingConfig = configOf('YAML config file that has the endpoint of that name (default: the operators say which)');
const ownConfig = option('-c, --config <json|file>', 'Its config block, or a YAML file that holds it');

const env = option('--env <path>', 'Variables file (default: .env, where there is one)');
/** Of commands that have it: see `withJsonOutput`. */
export const json = option('--json', 'Print JSON, errors included');
const explain = option('--explain', 'Show the hashed text beside each endpoint ID');
const watch = option('--watch', 'Reload the config when its file or the variables file changes');
const workers = option('--workers <n>', 'Processes that serve together (default: server.workers of the config, or 1)');
const node = option('--node <address>', 'Signer that must have signed');
const endpointId = option('--endpoint-id <id>', 'Endpoint that must have answered');
const parameters = option('--parameters <json>', 'What must have been asked; the answer needs a receipt');
const maxAge = option('--max-age <seconds>', 'Refuse an older answer');
const type = option('--type <types>', 'Show the value as these types, such as int256');
const metricsUrl = option('--url <url>', 'Where its metrics are, in place of -c');
const dir = option('--dir <folder>', 'Where to write it (default: here)');
const kind = option('--kind <kind>', 'What it does, such as auth or route (default: hooks)');
const request = option('--request <file>', 'Recorded request, JSON or YAML (default: a sample)');
const timeout = option('--timeout <ms>', 'Its budget (default: its own, or 1000)');
const record = option('--path <file>', 'The record, without a config file');
const digest = option('--digest <digest>', 'What was signed, as verify shows it');
const endpoint = option('--endpoint <id|name>', 'Endpoint ID, or <api>/<endpoint>');
const payment = option('--payment <tx|nonce>', 'Transaction, nonce or payer');
const requestId = option('--request <id>', 'X-Request-Id of the response');
const since = option('--since <time>', 'A time in ISO 8601, or how long ago, such as 2h');
const until = option('--until <time>', 'As --since');
const domain = option('-d, --domain <domain>', 'Domain of the API; the record stands at _node.<domain>', {
  required: true,
});
const address = option('--address <address>', 'Signer that the record must name');
const url = option('--url <url>', 'Running service whose signer it must name');
const resolver = option('--resolver <ip:port>', "Instead of the system's resolver");

const operator = option(
  '--from <url=address>',
  'An operator: the base of its service, and the address that signs there',
  {
    required: true,
    many: true,
  },
);
const k = option('--k <n>', 'Good answers that there must be (default: one of every operator)');
const maxDeviation = option('--max-deviation <fraction>', 'Refuse a value further from the median, such as 0.01');

const importOptions = [
  option('--out <file>', 'Where to write it (default: stdout)'),
  option('--merge', 'Add to that file what it lacks, and leave the rest as it is'),
  option('--only <methods>', 'Such as GET or GET,POST', { many: true }),
  option('--include <pattern>', 'Paths or names, in which * is any text', { many: true }),
  option('--url <url>', 'The upstream, in place of its servers'),
  option('--refs', 'Read documents beside it that it refers to: below its folder, or of its server'),
  option('--yes', 'Write without a question'),
];

const force = option('--force', 'Also where its request may still be under way');
const payer = option('--payer <address>', 'Whose payment, where several have this nonce');
const rpc = option('--rpc <chain=url>', 'A node of the chain, such as eip155:84532=https://node.example', {
  required: true,
});
const dryRun = option('--dry-run', 'Change nothing');

export const commands: readonly CommandSpec[] = [
  {
    name: 'start',
    description: 'Start the service; SIGHUP reloads the config',
    options: [config, env, watch, workers],
    run: async (given) => (await import('./start.ts')).start(given),
  },
  {
    name: 'generate-mnemonic',
    description: 'Print a new mnemonic, its private key and its address',
    options: [],
    run: async () => (await import('./generate-mnemonic.ts')).generateMnemonic(),
  },
  {
    name: 'address',
    description: "Print the signer's address",
    options: [signerConfig, env],
    run: async (given) => (await import('./address.ts')).address(given),
  },
  {
    name: 'config validate',
    description: 'Check a config file and print the ID of every endpoint',
    options: [config, env, explain, json],
    run: async (given) => (await import('./config-validate.ts')).validateConfig(given),
  },
  {
    name: 'config schema',
    description: 'Print the JSON Schema of the config file',
    options: [],
    run: async () => (await import('./config-schema.ts')).printSchema(),
  },
  {
    name: 'import',
    argument: 'file|url',
    description: 'Make a config of an OpenAPI document',
    options: [...importOptions, env, json],
    run: async (given, source) => (await import('./import.ts')).importOpenApi(given, source),
  },
  {
    name: 'try',
    argument: 'api/endpoint',
    description: 'Ask an upstream once, and print what could be signed of its answer',
    options: [config, param, env, json],
    run: async (given, name) => (await import('./try.ts')).tryOnce(given, name),
  },
  {
    name: 'openapi',
    description: 'Print the OpenAPI document of the endpoints',
    options: [config, env],
    run: async (given) => (await import('./openapi.ts')).printOpenApi(given),
  },
  {
    name: 'plugins',
    description: 'Print every stage with its failure policy and its plugins in order',
    options: [config, env, json],
    run: async (given) => (await import('./plugins.ts')).printPlugins(given),
  },
  {
    name: 'status',
    description: 'Print what a running service is and does, by the port of its metrics',
    options: [metricsConfig, metricsUrl, env, json],
    run: async (given) => (await import('./status.ts')).printStatus(given),
  },
  {
    name: 'plugin new',
    argument: 'name',
    description: 'Write a new plugin and its test',
    options: [dir, kind],
    run: async (given, name) => (await import('./plugin-new.ts')).newPlugin(given, name),
  },
  {
    name: 'plugin test',
    argument: 'file',
    description: 'Pass a recorded request through the hooks of a plugin',
    options: [ownConfig, request, timeout, env],
    run: async (given, file) => (await import('./plugin-test.ts')).testPluginFile(given, file),
  },
  {
    name: 'verify',
    argument: 'file|-',
    description: 'Check the signature of a saved answer, or of one on stdin',
    options: [node, endpointId, parameters, maxAge, type, answerConfig, env, json],
    run: async (given, file) => (await import('./verify.ts')).verify(given, file),
  },
  {
    name: 'ask',
    description: 'Ask several operators for an int256, and print the median of the good answers',
    options: [operator, { ...endpoint, required: true }, param, k, maxAge, maxDeviation, namingConfig, env, json],
    run: async (given) => (await import('./ask.ts')).askOperators(given),
  },
  {
    name: 'audit find',
    description: 'Print what settings.audit has recorded: what was signed, and for whom',
    options: [recordConfig, record, env, digest, endpoint, payment, requestId, since, until],
    run: async (given) => (await import('./audit-find.ts')).findAudited(given),
  },
  {
    name: 'payments show',
    argument: 'tx|nonce',
    description: 'Print what is known of a payment',
    options: [config, env],
    run: async (given, id) => (await import('./payments.ts')).showPayment(given, id),
  },
  {
    name: 'payments release',
    argument: 'tx|nonce',
    description: 'Let a payment be used again',
    options: [config, env, payer, force],
    run: async (given, id) => (await import('./payments.ts')).releasePayment(given, id),
  },
  {
    name: 'payments reconcile',
    description: 'Ask the chain about settlements whose end is not known',
    options: [config, env, rpc, dryRun],
    run: async (given) => (await import('./payments.ts')).reconcilePayments(given),
  },
  {
    name: 'identity show',
    description: 'Print the DNS record that names the signer',
    options: [domain, signerConfig, env],
    run: async (given) => (await import('./identity-show.ts')).showIdentity(given),
  },
  {
    name: 'identity verify',
    description: 'Check that the DNS record of a domain names a signer',
    options: [domain, address, url, env, resolver],
    run: async (given) => (await import('./identity-verify.ts')).verifyIdentity(given),
  },
];
