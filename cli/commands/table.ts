import type { Given, OptionSpec } from '../arguments.ts';

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
const explain: OptionSpec = { long: 'explain', description: 'Show the hashed text beside each endpoint ID' };
const node: OptionSpec = { long: 'node', value: 'address', description: 'Signer that must have signed' };
const endpointId: OptionSpec = { long: 'endpoint-id', value: 'id', description: 'Endpoint that must have answered' };
const maxAge: OptionSpec = { long: 'max-age', value: 'seconds', description: 'Refuse an older answer' };

export const commands: readonly CommandSpec[] = [
  {
    name: 'start',
    description: 'Start the service',
    options: [config, env],
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
    options: [env],
    run: async (given) => (await import('./address.ts')).address(given),
  },
  {
    name: 'config validate',
    description: 'Check a config file and print the ID of every endpoint',
    options: [config, env, explain],
    run: async (given) => (await import('./config-validate.ts')).validateConfig(given),
  },
  {
    name: 'config schema',
    description: 'Print the JSON Schema of the config file',
    options: [],
    run: async () => (await import('./config-schema.ts')).printSchema(),
  },
  {
    name: 'plugins',
    description: 'Print every stage with its failure policy and its plugins in order',
    options: [config, env],
    run: async (given) => (await import('./plugins.ts')).printPlugins(given),
  },
  {
    name: 'verify',
    argument: 'file|-',
    description: 'Check the signature of a saved answer, or of one on stdin',
    options: [node, endpointId, maxAge],
    run: async (given, file) => (await import('./verify.ts')).verify(given, file),
  },
];
