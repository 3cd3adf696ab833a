/** Checks of who is paid in a config, and how much. */
import { isSameHex } from '../../lib/eth/hex.ts';
import { checkAddress, error, type Finding } from '../../plugins-sdk/config.ts';

export function isZeroAddress(address: string): boolean {
  return /^0x0{40}$/.test(address);
}

/** @param amount an integer in decimal digits. */
export function checkAmount(at: string, amount: string): Finding[] {
  return BigInt(amount) >> 256n === 0n ? [] : [error(at, 'is more than any token can hold (a uint256)')];
}

/** Finds an address at which payments would be lost. @param token that is paid with; none where it is the native asset. */
export function checkPayee(at: string, payee: string, token: string | undefined): Finding[] {
  return [
    ...checkAddress(at, payee),
    ...(isZeroAddress(payee) ? [error(at, 'is the zero address: payments would be lost')] : []),
    ...(token !== undefined && isSameHex(payee, token)
      ? [error(at, 'is the token itself: payments would be lost')]
      : []),
  ];
}
