import type { OptionSpec } from '../arguments.ts';

/** Options of the commands `payments`. */

export const force: OptionSpec = { long: 'force', description: 'Also where its request may still be under way' };
export const payer: OptionSpec = {
  long: 'payer',
  value: 'address',
  description: 'Whose payment, where several have this nonce',
};
export const rpc: OptionSpec = {
  long: 'rpc',
  value: 'chain=url',
  required: true,
  description: 'A node of the chain, such as eip155:84532=https://node.example',
};
export const dryRun: OptionSpec = { long: 'dry-run', description: 'Change nothing' };
