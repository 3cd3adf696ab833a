import { isSameHex } from '../../lib/eth/hex.ts';
import { ethers } from '../../lib/process/lazy.ts';
import type { Payment } from './payload.ts';

const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
};

/** Whether the account that pays has signed by its own key; wallets that are contracts sign in ways that only the chain can check. */
export function isSignedByPayer({ requirements, authorization, signature }: Payment): boolean {
  const { network, asset, extra } = requirements;
  const { name, version } = extra as { readonly name: string; readonly version: string };
  const domain = { name, version, chainId: BigInt(network.slice('eip155:'.length)), verifyingContract: asset };
  try {
    return isSameHex(ethers().verifyTypedData(domain, types, authorization, signature), authorization.from);
  } catch {
    return false;
  }
}
