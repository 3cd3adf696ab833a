/** Answers and receipts are hashed as wallets and ethers hash them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hashMessage, keccak256, TypedDataEncoder, Wallet } from 'ethers';
import fc from 'fast-check';
import { type Hex, toHex } from '../../lib/eth/hex.ts';
import { personalStatement, receiptStatement } from '../../lib/eth/statements.ts';
import { RECEIPT_DOMAIN, RECEIPT_TYPES } from '../support/receipts.ts';

const word = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes): Hex => toHex(bytes));
const timestamp = fc.oneof(
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  fc.constantFrom(0, Number.MAX_SAFE_INTEGER),
);
const receipts = fc.record({ endpointId: word, requestHash: word, dataHash: word, timestamp });

describe('statements', () => {
  it('a receipt is hashed as ethers hashes the typed data, and its preimage is what is hashed', () => {
    fc.assert(
      fc.property(receipts, (receipt) => {
        const { kind, hash, preimage, data } = receiptStatement(receipt);
        assert.equal(kind, 'typed');
        assert.equal(toHex(hash), TypedDataEncoder.hash(RECEIPT_DOMAIN, RECEIPT_TYPES, receipt));
        assert.equal(keccak256(preimage()), toHex(hash));
        assert.deepEqual(data(), TypedDataEncoder.getPayload(RECEIPT_DOMAIN, RECEIPT_TYPES, receipt));
      }),
    );
  });

  it('what `data` says is what a wallet signs', async () => {
    const wallet = new Wallet(`0x${'11'.repeat(32)}`);
    await fc.assert(
      fc.asyncProperty(receipts, async (receipt) => {
        const { hash, data } = receiptStatement(receipt);
        const { types, domain, message } = data();
        const { EIP712Domain: _, ...own } = types;
        const mutable = Object.fromEntries(Object.entries(own).map(([name, fields]) => [name, [...fields]]));
        const signature = await wallet.signTypedData(domain, mutable, message);
        assert.equal(signature, wallet.signingKey.sign(hash).serialized);
      }),
      { numRuns: 20 },
    );
  });

  it('an answer is hashed as ethers hashes a personal message of 32 bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (digest) => {
        const { kind, hash, preimage } = personalStatement(digest);
        assert.equal(kind, 'personal');
        assert.equal(toHex(hash), hashMessage(digest));
        assert.equal(keccak256(preimage()), toHex(hash));
      }),
    );
  });
});
