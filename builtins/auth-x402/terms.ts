import { Check } from 'typebox/value';
import {
  addressSchema,
  type CheckContext,
  checkAddress,
  checkPlainHttp,
  closedObject,
  error,
  type Finding,
  httpTarget,
  millisecondsSchema,
  stateKey,
  warning,
} from '../../plugins-sdk/config.ts';
import { type Endpoint, type Static, Type } from '../../plugins-sdk/index.ts';
import { authObjects, checkAmount, checkPayee, isZeroAddress } from '../shared/auth-objects.ts';
import { LONGEST_VALIDITY_MS } from './proof.ts';

/** One `auth` object of type `x402`: the price, its chain and recipient, and the node that confirms payments. */
export const TermsSchema = closedObject({
  network: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Chain id (EIP-155)' }),
  rpc: Type.String({ pattern: '^https?://', description: 'URL of a JSON-RPC node of that chain' }),
  token: addressSchema('address of an ERC-20 token, or the zero address for the native asset, 0x and 40 hex digits'),
  amount: Type.String({ pattern: '^[1-9][0-9]{0,77}$', description: 'Integer in the smallest unit of the token' }),
  recipient: addressSchema('address that is paid, 0x and 40 hex digits'),
  expiry: Type.Optional(millisecondsSchema('Time to pay; default 5m', { duration: 0 })),
  confirmations: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: "Confirmations, the payment's own block included; default 1",
    }),
  ),
});
export type Terms = Static<typeof TermsSchema>;

/** Returns the terms of all payments on chain that an endpoint accepts. */
export function termsIn({ auth }: Pick<Endpoint, 'auth'>): Terms[] {
  return auth.flatMap(({ type, ...terms }) => (type === 'x402' && Check(TermsSchema, terms) ? [terms] : []));
}

/** The default of `expiry`: a client's time to pay, in milliseconds. */
const DEFAULT_EXPIRY_MS = 300_000;

/** A payment may be this many milliseconds older than the client's time to pay. */
const EXTRA_AGE_MS = 600_000;
/** Least milliseconds for which a payment is remembered, so that an `expiry` of up to an hour can change at any time. */
export const LEAST_LIFE_MS = EXTRA_AGE_MS + 3_600_000;

/** Returns a client's time to pay, in milliseconds. */
export function expiryOf({ expiry }: Pick<Terms, 'expiry'>): number {
  return expiry ?? DEFAULT_EXPIRY_MS;
}

/** Returns how old a payment may be, in milliseconds since its block. */
export const greatestAge = (terms: Pick<Terms, 'expiry'>): number => EXTRA_AGE_MS + expiryOf(terms);

/** Names the token of a price as marks and metrics do. */
export const tokenOf = ({ network, token }: Terms) => ({ network: `eip155:${network}`, asset: token });

function* checkUrl(path: string, text: string): Iterable<Finding> {
  if (!URL.canParse(text)) return yield error(path, 'is no valid URL');
  try {
    httpTarget(text);
  } catch {
    yield error(path, 'the user name and password must be percent-encoded');
  }
}

function* checkTerms(at: string, terms: Terms): Iterable<Finding> {
  yield* checkUrl(`${at}.rpc`, terms.rpc);
  yield* checkPlainHttp(`${at}.rpc`, terms.rpc, 'say that a payment was made');
  yield* checkAddress(`${at}.token`, terms.token);
  yield* checkAmount(`${at}.amount`, terms.amount);
  yield* checkPayee(`${at}.recipient`, terms.recipient, isZeroAddress(terms.token) ? undefined : terms.token);
  const expiry = expiryOf(terms);
  if (expiry < 10_000) yield warning(`${at}.expiry`, 'is in milliseconds: less than 10 seconds to pay');
  if (expiry > LONGEST_VALIDITY_MS)
    yield warning(`${at}.expiry`, 'is longer than any proof of payment is valid (600000)');
}

const IN_MEMORY =
  'keeps payments in memory: after a restart, those that were made before it are refused (Payment too old); use file or redis';

/** Checks what the schema cannot express. */
export function* checkAllTerms({ endpoints, config }: CheckContext): Iterable<Finding> {
  const sold = authObjects(endpoints, 'x402', TermsSchema);
  const isInMemory = [undefined, 'memory'].includes(stateKey.in(config) as undefined);
  if (isInMemory && sold.length > 0) yield warning('settings.state', IN_MEMORY);
  for (const { at, terms } of sold) yield* checkTerms(at, terms);
}
