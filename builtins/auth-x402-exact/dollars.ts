/** What payments are worth in dollars, which catalogues are told, and which tokens are known to be worth one. */
import { type Accept, boundsOf, type Terms } from './terms.ts';

/**
 * Tokens with EIP-3009 that are worth a dollar, lower-case, all of 6 decimals, with their EIP-712 domains: those that the public
 * libraries know, too.
 */
const DOLLARS: ReadonlyMap<string, string> = new Map([
  ['eip155:1 0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', "{ name: USD Coin, version: '2' }"],
  ['eip155:14 0xe7cd86e13ac4309349f30b3435a9d337750fc82d', "{ name: USD₮0, version: '1' }"],
  ['eip155:50 0xfa2958cb79b0491cc627c1557f441ef849ca8eb1', "{ name: USDC, version: '2' }"],
  ['eip155:51 0xb5ab69f7bbada22b28e79c8ffaece55ef1c771d4', "{ name: USDC, version: '2' }"],
  ['eip155:137 0x3c499c542cef5e3811e1192ce70d8cc03d5c3359', "{ name: USD Coin, version: '2' }"],
  ['eip155:143 0x754704bc059f8c67012fed69bc8a327a5aafb603', "{ name: USDC, version: '2' }"],
  ['eip155:988 0x779ded0c9e1022225f8e0630b35a9b54be713736', "{ name: USDT0, version: '1' }"],
  ['eip155:1328 0x4fcf1784b31630811181f670aea7a7bef803eaed', "{ name: USDC, version: '2' }"],
  ['eip155:1329 0xe15fc38f6d8c56af07bbcbe3baf5708a2bf42392', "{ name: USDC, version: '2' }"],
  ['eip155:2201 0x78cf24370174180738c5b8e352b6d14c83a6c9a9', "{ name: USDT0, version: '1' }"],
  ['eip155:8453 0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', "{ name: USD Coin, version: '2' }"],
  ['eip155:36900 0x9cb8142aebbcdc60af7c97af897a67a8f3ca71c2', "{ name: USDC.e, version: '2' }"],
  ['eip155:42161 0xaf88d065e77c8cc2239327c5edb3a432268e5831', "{ name: USD Coin, version: '2' }"],
  ['eip155:42220 0x48065fbbe25f71c9282ddf5e1cd6d6a887483d5e', "{ name: Tether USD, version: '1' }"],
  ['eip155:42220 0xceba9300f2b948710d2653dd7b07f33a8b32118c', "{ name: USDC, version: '2' }"],
  ['eip155:42220 0xd2ab3c9a02dbbab236bfec45d1d755df4267f771', "{ name: Tether America USD, version: '1' }"],
  ['eip155:43114 0xb97ef9ef8734c71904d8002f8b6bc66dd9c48a6e', "{ name: USD Coin, version: '2' }"],
  ['eip155:84532 0x036cbd53842c5426634e7929541ec2318f3dcf7e', "{ name: USDC, version: '2' }"],
  ['eip155:181228 0x401ecb1d350407f13ba348573e5630b83638e30d', "{ name: Bridged USDC, version: '2' }"],
  ['eip155:190415 0x401ecb1d350407f13ba348573e5630b83638e30d', "{ name: Bridged USDC, version: '2' }"],
  ['eip155:421614 0x75faf114eafb1bdbe2f0316df893fd58ce46aa4d', "{ name: USD Coin, version: '2' }"],
  ['eip155:11142220 0x01c5c0122039549ad1493b8220cabedd739bc44e', "{ name: USDC, version: '2' }"],
]);
const DECIMALS = 6;

type Token = Pick<Accept, 'network' | 'asset'>;

function nameOf({ network, asset }: Token): string {
  return `${network} ${asset.toLowerCase()}`;
}

/** The domain of a token that is known, as a config has it. */
export function domainOf(token: Token): string | undefined {
  return DOLLARS.get(nameOf(token));
}

/** The chains on which an address is known to be a token. */
export function chainsOf(asset: string): string[] {
  return [...DOLLARS.keys()].flatMap((known) => {
    const [network = '', address] = known.split(' ');
    return address === asset.toLowerCase() ? [network] : [];
  });
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
