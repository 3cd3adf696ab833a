import { isAddress, isBytes32 } from '../../lib/eth/hex.ts';
import { operate } from '../../service/index.ts';
import { logTo } from '../../service/log.ts';
import { complain, print } from '../../service/terminal.ts';
import { align, escapeUnprintable } from '../../service/text.ts';
import { ADDRESS_RULE, checkedOption, type Given, requireWith, UsageError } from '../arguments.ts';
import { givenService } from './given-config.ts';

const RPC = /^eip155:([1-9]\d{0,14})=(https?:\/\/.+)$/;

/** Prints open payments or one payment, releases one, or asks a chain about all that are unknown. */
export function payments(given: Given, id: string): Promise<number> {
  requireWith(given, 'release', ['payer', 'force']);
  requireWith(given, 'reconcile', ['rpc', 'dry-run']);
  if (given.flag('reconcile')) return reconcile(given, id);
  if (given.flag('release')) return release(given, id);
  return id === '' ? ask(given, 'payments list', {}) : ask(given, 'payments show', { id: idOf(id) });
}

/** Lets a payment be used again. */
function release(given: Given, id: string): Promise<number> {
  if (id === '') throw new UsageError('option --release needs a payment: write payments <tx|nonce> --release');
  const payer = checkedOption(given, 'payer', isAddress, ADDRESS_RULE);
  const words = { id: idOf(id), ...(payer && { payer }), ...(given.flag('force') && { force: 'yes' }) };
  return ask(given, 'payments release', words);
}

/** Asks a chain about all payments of which it is not known whether they were taken. */
function reconcile(given: Given, id: string): Promise<number> {
  if (given.flag('release')) throw new UsageError('only one of --release and --reconcile can be given');
  if (id !== '') throw new UsageError('option --reconcile takes no payment: it asks about all that are not known');
  const [, network, rpc] = RPC.exec(given.optional('rpc') ?? '') ?? [];
  if (network === undefined || rpc === undefined || !URL.canParse(rpc))
    throw new UsageError(
      'option --reconcile needs --rpc <network=url>, the chain and a node of it, such as eip155:84532=https://node.example',
    );
  const words = { network: `eip155:${network}`, rpc, ...(given.flag('dry-run') && { dryRun: 'yes' }) };
  return ask(given, 'payments reconcile', words);
}

function idOf(text: string): string {
  if (isBytes32(text)) return text.toLowerCase();
  throw new UsageError(`"${text}" is no transaction hash and no nonce: 0x and 64 hex digits`);
}

async function ask(given: Given, name: string, words: Readonly<Record<string, string>>): Promise<number> {
  const results = await operate(await givenService(given), { name, words }, stderrLog);
  if (results.length === 0 && words.id !== undefined)
    throw new Error(
      `nothing is known of ${words.id}${words.payer ? ` by ${words.payer}` : ''}: look for it in the log`,
    );
  if (results.length === 0)
    await print(words.network ? `nothing is unknown on ${words.network}\n` : 'no payment is open\n');
  const blocks = results.map((result) =>
    align(Object.entries(result).map(([key, text]) => [key, escapeUnprintable(text)])),
  );
  await print(blocks.map((lines) => `${lines.join('\n')}\n`).join('\n'));
  const refused = results.flatMap((result) => result.refused ?? []);
  await complain('error', refused);
  return refused.length === 0 ? 0 : 1;
}

/** The log of work that this process does in place of the service. */
const stderrLog = logTo((level, message, fields) => {
  const said = Object.entries(fields).map(([key, value]) => ` ${key}=${value}`);
  if (level !== 'debug') void complain(level, [message + said.join('')]);
});
