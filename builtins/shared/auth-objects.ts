import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { isSameHex } from '../../lib/eth/hex.ts';
import { authPath, checkAddress, type EndpointDraft, error, type Finding } from '../../plugins-sdk/config.ts';

/** Returns the valid auth objects of one type, each with its config path, and once: endpoints share those of their API. */
export function authObjects<S extends TSchema>(endpoints: readonly EndpointDraft[], wanted: string, schema: S) {
  const owners = new Map(endpoints.map((endpoint) => [authPath(endpoint, 0), endpoint]));
  return [...owners.values()].flatMap((endpoint) =>
    endpoint.auth.flatMap(({ type, ...terms }, index) =>
      type === wanted && Check(schema, terms) ? [{ terms, at: authPath(endpoint, index) }] : [],
    ),
  );
}

/** Returns whether an address is the zero address. */
export function isZeroAddress(address: string): boolean {
  return /^0x0{40}$/.test(address);
}

/** Finds an amount that no token can hold. @param amount an integer in decimal digits. */
export function* checkAmount(at: string, amount: string): Iterable<Finding> {
  if (BigInt(amount) >> 256n !== 0n) yield error(at, 'is more than any token can hold (a uint256)');
}

/** Finds an address at which payments would be lost. @param token the token to pay with; undefined for the native asset. */
export function* checkPayee(at: string, payee: string, token: string | undefined): Iterable<Finding> {
  yield* checkAddress(at, payee);
  if (isZeroAddress(payee)) yield error(at, 'is the zero address: payments would be lost');
  if (token !== undefined && isSameHex(payee, token)) yield error(at, 'is the token itself: payments would be lost');
}
