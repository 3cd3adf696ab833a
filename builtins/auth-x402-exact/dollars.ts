/** What payments are worth in dollars, which catalogues are told, and which tokens are known to be worth one. */
import tokens from './dollars.json' with { type: 'json' };
import { type Accept, boundsOf, type Terms } from './terms.ts';

/**
 * Tokens with EIP-3009 that are worth a dollar, by chain, lower-case, all of 6 decimals, with their EIP-712 domains: those that the
 * public libraries know, too.
 */
const DOLLARS: Readonly<Record<string, Readonly<Record<string, string>>>> = tokens;
const DECIMALS = 6;

type Token = Pick<Accept, 'network' | 'asset'>;

/** The domain of a token that is known, as a config has it. */
export function domainOf({ network, asset }: Token): string | undefined {
  return DOLLARS[network]?.[asset.toLowerCase()];
}

/** The chains on which an address is known to be a token. */
export function chainsOf(asset: string): string[] {
  return Object.keys(DOLLARS).filter((network) => domainOf({ network, asset }) !== undefined);
}

/** What an offer costs in dollars, where its token is known to be worth one: `0.01`. */
export function dollarsOf({ amount, ...token }: Token & { readonly amount: string }): string | undefined {
  if (domainOf(token) === undefined) return undefined;
  const digits = amount.padStart(DECIMALS + 1, '0');
  return plain(`${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`);
}

/** What operators say that it costs: `0.01` of `0.010 USD`. */
export function statedDollars({ price }: Pick<Terms, 'price'>): string | undefined {
  return price === undefined ? undefined : plain(price.slice(0, -' USD'.length));
}

/** Without zeros that say nothing. */
function plain(decimal: string): string {
  const [whole = '', part = ''] = decimal.split('.');
  const rest = part.replace(/0+$/, '');
  return `${whole.replace(/^0+(?=\d)/, '')}${rest && `.${rest}`}`;
}

/** `x-payment-info` of an operation, as crawlers of paid APIs read it; the 402 says the rest. */
export function paymentInfo(all: readonly Terms[]) {
  const dollars = all.flatMap((terms) =>
    terms.accepts.flatMap(({ amount, ...token }) =>
      Object.values(boundsOf(amount)).map((bound) => dollarsOf({ ...token, amount: bound }) ?? statedDollars(terms)),
    ),
  );
  // One that is unknown is sorted last: nobody can tell then what it costs at most.
  const [min, ...more] = dollars.sort((a, b) => Number(a) - Number(b));
  const max = more.at(-1);
  const range = max === undefined ? { mode: 'dynamic' } : { mode: 'dynamic', currency: 'USD', min, max };
  const price = min !== undefined && min === max ? { mode: 'fixed', currency: 'USD', amount: min } : range;
  const [first] = all.flatMap(({ accepts }) => accepts);
  return { price, network: first?.network, asset: first?.asset, protocols: [{ x402: {} }] };
}
