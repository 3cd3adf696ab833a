/** Prices in dollars, for catalogues, and the tokens that are known to be worth a dollar. */
import tokens from './dollars.json' with { type: 'json' };
import { type Accept, boundsOf, type Terms } from './terms.ts';

/**
 * The EIP-712 domains of EIP-3009 tokens that are worth a dollar, by chain and lower-case address. All have 6 decimals. The
 * public libraries know the same tokens.
 */
const DOLLARS: Readonly<Record<string, Readonly<Record<string, string>>>> = tokens;
const DECIMALS = 6;

type Token = Pick<Accept, 'network' | 'asset'>;

/** Returns the EIP-712 domain of a known token, as a config writes it. */
export function domainOf({ network, asset }: Token): string | undefined {
  return DOLLARS[network]?.[asset.toLowerCase()];
}

/** Returns the chains on which an address is a known token. */
export function chainsOf(asset: string): string[] {
  return Object.keys(DOLLARS).filter((network) => domainOf({ network, asset }) !== undefined);
}

/** Returns an amount in dollars, such as `0.01`; undefined for an unknown token. */
export function dollarsOf({ amount, ...token }: Token & { readonly amount: string }): string | undefined {
  if (domainOf(token) === undefined) return undefined;
  const digits = amount.padStart(DECIMALS + 1, '0');
  return plain(`${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`);
}

/** Returns the price that the operator states: `0.01` for `0.010 USD`. */
export function statedDollars({ price }: Pick<Terms, 'price'>): string | undefined {
  return price === undefined ? undefined : plain(price.slice(0, -' USD'.length));
}

/** Removes needless zeros. */
function plain(decimal: string): string {
  const [whole = '', part = ''] = decimal.split('.');
  const rest = part.replace(/0+$/, '');
  return `${whole.replace(/^0+(?=\d)/, '')}${rest && `.${rest}`}`;
}

/** Makes the `x-payment-info` of an operation, as crawlers of paid APIs read it; the 402 has the rest. */
export function paymentInfo(all: readonly Terms[]) {
  const dollars = all.flatMap((terms) =>
    terms.accepts.flatMap(({ amount, ...token }) =>
      Object.values(boundsOf(amount)).map((bound) => dollarsOf({ ...token, amount: bound }) ?? statedDollars(terms)),
    ),
  );
  // `sort` puts undefined last: with one unknown price the maximum is unknown, too.
  const [min, ...more] = dollars.sort((a, b) => Number(a) - Number(b));
  const max = more.at(-1);
  const range = max === undefined ? { mode: 'dynamic' } : { mode: 'dynamic', currency: 'USD', min, max };
  const price = min !== undefined && min === max ? { mode: 'fixed', currency: 'USD', amount: min } : range;
  const [first] = all.flatMap(({ accepts }) => accepts);
  return { price, network: first?.network, asset: first?.asset, protocols: [{ x402: {} }] };
}
