/** The config of standard payments: what to pay, and who verifies and settles it. */
import { Check } from 'typebox/value';
import { addressSchema, closedObject } from '../../plugins-sdk/config.ts';
import { type AuthMethod, type Endpoint, type Static, Type } from '../../plugins-sdk/index.ts';

export const TYPE = 'x402-exact';

const matching = (pattern: string, description: string) => Type.String({ pattern, description });
const some = (description: string) => Type.String({ minLength: 1, description });
const whole = (description: string) => matching('^[1-9][0-9]{0,77}$', `A whole number in quotes${description}`);

const PluginPriceSchema = closedObject(
  {
    by: some('Name of a price that a plugin has at the stage `price`'),
    max: whole(': above it the price is a fault of the plugin'),
  },
  'By a plugin',
);

const AcceptSchema = closedObject({
  network: matching('^eip155:[1-9][0-9]{0,14}$', 'Chain as CAIP-2 names it, such as eip155:8453'),
  asset: addressSchema('address of an ERC-20 token with EIP-3009, 0x and 40 hex digits'),
  amount: Type.Union([whole(', of the smallest unit of the token: 10000 is 0.01 USDC'), PluginPriceSchema], {
    description: 'Price in the smallest unit of the token: an integer, or {by, max} by a plugin',
  }),
  payTo: addressSchema('address that is paid, 0x and 40 hex digits'),
  extra: closedObject(
    { name: some('Name of the EIP-712 domain of the token'), version: some('Version of that domain') },
    'What wallets need to sign',
  ),
  maxTimeoutSeconds: Type.Optional(
    Type.Integer({ minimum: 10, maximum: 86_400, description: 'Seconds that an authorisation is valid; default 300' }),
  ),
});
export type Accept = Static<typeof AcceptSchema>;

const UrlSchema = matching('^https?://', 'URL of the facilitator');
const CdpSchema = closedObject(
  {
    type: Type.Literal('cdp'),
    keyId: some('Id of an API key of the Coinbase Developer Platform'),
    keySecret: some('Its secret; keep it in a variable'),
  },
  'Signs a token for each request',
);
const FacilitatorSchema = closedObject({
  url: UrlSchema,
  headers: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Sent with every request' })),
  auth: Type.Optional(CdpSchema),
});
export type FacilitatorTerms = Static<typeof FacilitatorSchema>;
const OneSchema = Type.Union([UrlSchema, FacilitatorSchema]);

/** One `auth` object of this type. */
export const TermsSchema = closedObject({
  facilitator: Type.Union([UrlSchema, FacilitatorSchema, Type.Array(OneSchema, { minItems: 1, maxItems: 5 })], {
    description: 'Verifies and settles: a URL, {url, headers, auth}, or a list of these in order of preference',
  }),
  publicUrl: Type.Optional(
    matching(
      '^https?://',
      'URL under which clients reach the service, told to wallets; default the first of settings.openapi.servers, else they are told the path only',
    ),
  ),
  price: Type.Optional(
    matching(
      '^(?:0|[1-9][0-9]{0,8})(?:\\.[0-9]{1,18})? USD$',
      'What clients are told that it costs, such as 0.01 USD; tokens that are known to be dollars need none',
    ),
  ),
  accepts: Type.Array(AcceptSchema, {
    ...{ minItems: 1, maxItems: 20 },
    description: 'What may be paid; a client chooses one',
  }),
});
export type Terms = Static<typeof TermsSchema>;

/** Returns the terms of an auth method; undefined for a method of another type. */
export function termsIn({ type, ...terms }: AuthMethod): Terms | undefined {
  return type === TYPE && Check(TermsSchema, terms) ? terms : undefined;
}

/** Returns the facilitators, in order of preference. */
export function facilitatorsIn({ facilitator }: Terms): FacilitatorTerms[] {
  return [facilitator].flat().map((one) => (typeof one === 'string' ? { url: one } : one));
}

/** Returns all ways to pay that an endpoint accepts, each with its auth method. */
export function acceptsOf({ auth }: Pick<Endpoint, 'auth'>) {
  return auth.flatMap((method) => (termsIn(method)?.accepts ?? []).map((accept) => ({ method, accept })));
}

/** Returns the bounds of a price, in the smallest unit of the token. */
export function boundsOf(amount: Accept['amount']): { readonly min: string; readonly max: string } {
  return typeof amount === 'string' ? { min: amount, max: amount } : { min: '0', max: amount.max };
}
