import { randomBytes } from 'node:crypto';
import { paymentDigest } from '../../lib/eth/eip191.ts';
import type { Address, Hex } from '../../lib/eth/hex.ts';
import { createSigner } from '../../plugins-sdk/signing/local-key.ts';

const payer = createSigner(`0x${'22'.repeat(32)}`);

/** Who pays whom in the chain of `upstream.ts`. */
export const PAYER = payer.address;
export const RECIPIENT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

/** Headers of requests that pay, each with a payment of its own. @param node who signs answers. */
export function payments(node: Address, endpointId: Hex): () => Record<string, string> {
  const expiresAt = Math.floor(Date.now() / 1000) + 590;
  const signature = payer.signDigest(paymentDigest(node, endpointId, expiresAt));
  return () => {
    const txHash = `0x${randomBytes(32).toString('hex')}`;
    return { 'x-payment-proof': JSON.stringify({ txHash, expiresAt, signature }) };
  };
}
