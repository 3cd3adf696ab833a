import type { Given, OptionSpec } from '../arguments.ts';
import { k, maxDeviation, namingConfig, operator, param } from './ask-options.ts';
import { importOptions } from './import-options.ts';
import { dryRun, force, payer, rpc } from './payments-options.ts';

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

const config: OptionSpec = {
  short: 'c',
  long: 'config',
  value: 'file',
  required: true,
  description: 'YAML config file',
};
const env: OptionSpec = {
  long: 'env',
  value: 'path',
  description: 'Variables file (default: .env, where there is one)',
};
const signerConfig: OptionSpec = {
  ...config,
  required: false,
  description: 'YAML config file whose settings.signer it is (default: the key in the environment)',
};
/** Of commands that have it: see `withJsonOutput`. */
export const json: OptionSpec = { long: 'json', description: 'Print JSON, errors included' };
const explain: OptionSpec = { long: 'explain', description: 'Show the hashed text beside each endpoint ID' };
const watch: OptionSpec = {
  long: 'watch',
  description: 'Reload the config when its file or the variables file changes',
};
const workers: OptionSpec = {
  long: 'workers',
  value: 'n',
  description: 'Processes that serve together (default: server.workers of the config, or 1)',
};
const node: OptionSpec = { long: 'node', value: 'address', description: 'Signer that must have signed' };
const endpointId: OptionSpec = { long: 'endpoint-id', value: 'id', description: 'Endpoint that must have answered' };
const parameters: OptionSpec = {
  long: 'parameters',
  value: 'json',
  description: 'What must have been asked; the answer needs a receipt',
};
const maxAge: OptionSpec = { long: 'max-age', value: 'seconds', description: 'Refuse an older answer' };
const type: OptionSpec = { long: 'type', value: 'types', description: 'Show the value as these types, such as int256' };
const answerConfig: OptionSpec = {
  ...config,
  required: false,
  description: 'YAML config file that says which types the value has',
};
const metricsConfig: OptionSpec = {
  ...config,
  required: false,
  description: 'YAML config file of the running service',
};
const metricsUrl: OptionSpec = { long: 'url', value: 'url', description: 'Where its metrics are, in place of -c' };
const dir: OptionSpec = { long: 'dir', value: 'folder', description: 'Where to write it (default: here)' };
const kind: OptionSpec = {
  long: 'kind',
  value: 'kind',
  description: 'What it does, such as auth or route (default: hooks)',
};
const ownConfig: OptionSpec = {
  ...config,
  value: 'json|file',
  required: false,
  description: 'Its config block, or a YAML file that holds it',
};
const request: OptionSpec = {
  long: 'request',
  value: 'file',
  description: 'Recorded request, JSON or YAML (default: a sample)',
};
const timeout: OptionSpec = { long: 'timeout', value: 'ms', description: 'Its budget (default: its own, or 1000)' };
const recordConfig: OptionSpec = {
  ...config,
  required: false,
  description: 'YAML config file whose settings.audit.path it is',
};
const record: OptionSpec = { long: 'path', value: 'file', description: 'The record, without a config file' };
const digest: OptionSpec = { long: 'digest', value: 'digest', description: 'What was signed, as verify shows it' };
const endpoint: OptionSpec = { long: 'endpoint', value: 'id|name', description: 'Endpoint ID, or <api>/<endpoint>' };
const payment: OptionSpec = { long: 'payment', value: 'tx|nonce', description: 'Transaction, nonce or payer' };
const requestId: OptionSpec = { long: 'request', value: 'id', description: 'X-Request-Id of the response' };
const since: OptionSpec = {
  long: 'since',
  value: 'time',
  description: 'A time in ISO 8601, or how long ago, such as 2h',
};
const until: OptionSpec = { long: 'until', value: 'time', description: 'As --since' };
const domain: OptionSpec = {
  short: 'd',
  long: 'domain',
  value: 'domain',
  required: true,
  description: 'Domain of the API; the record stands at _node.<domain>',
};
const address: OptionSpec = { long: 'address', value: 'address', description: 'Signer that the record must name' };
const url: OptionSpec = { long: 'url', value: 'url', description: 'Running service whose signer it must name' };
const resolver: OptionSpec = { long: 'resolver', value: 'ip:port', description: "Instead of the system's resolver" };

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
