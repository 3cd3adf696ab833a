/** A ciphertext counts only with enough signatures of the coprocessors. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  concat,
  getBytes,
  hexlify,
  id,
  Signature,
  type TypedDataDomain,
  TypedDataEncoder,
  toBeHex,
  Wallet,
} from 'ethers';
import { attested, type Binding, type Coprocessors } from '../../builtins/fhe/attestation.ts';
import { types } from '../support/input-verification.ts';

const [first, second, third] = [new Wallet(id('1')), new Wallet(id('2')), new Wallet(id('3'))];
const stranger = new Wallet(id('a stranger'));

const binding: Binding = {
  handle: `0x${'ab'.repeat(32)}`,
  userAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  contractAddress: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  chainId: 11_155_111n,
};

const coprocessors: Coprocessors = {
  signers: [first.address, second.address.toLowerCase(), third.address],
  threshold: 2,
  gatewayChainId: 10_901n,
  verifyingContract: '0x483b9dE06E4E4C7D35CCf5837A1668487406D955',
};

/** A coprocessor's signature, over what `changed` does not replace. */
function sign(wallet: Wallet, changed: Readonly<Record<string, unknown>> = {}, gateway = 10_901n): string {
  const domain = { name: 'InputVerification', version: '1', chainId: gateway };
  return wallet.signingKey.sign(
    hashOf(
      { ...domain, verifyingContract: coprocessors.verifyingContract },
      {
        ctHandles: [binding.handle],
        userAddress: binding.userAddress,
        contractAddress: binding.contractAddress,
        contractChainId: binding.chainId,
        extraData: '0x00',
        ...changed,
      },
    ),
  ).serialized;
}

function hashOf(domain: TypedDataDomain, message: Readonly<Record<string, unknown>>): string {
  return TypedDataEncoder.hash(domain, types, message);
}

function proofOf(signatures: readonly string[], handles = [binding.handle], extra = '00'): Uint8Array {
  const counts = hexlify(new Uint8Array([handles.length, signatures.length]));
  return getBytes(`${counts}${[...handles, ...signatures].map((text) => text.slice(2)).join('')}${extra}`);
}

const handle = getBytes(binding.handle);

function check(signatures: readonly string[], changed: Partial<Coprocessors> = {}) {
  return attested([handle], proofOf(signatures), binding, { ...coprocessors, ...changed });
}

function tooFew(signed: number, needed = 2): Error {
  return new Error(`${signed} different coprocessors signed, ${needed} must`);
}

/** The other signature over the same: s in the upper half of the curve's order, which contracts refuse. */
function malleated(signature: string): string {
  const { r, s, v } = Signature.from(signature);
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  return concat([r, toBeHex(order - BigInt(s), 32), v === 27 ? '0x1c' : '0x1b']);
}

describe('what the coprocessors must have signed', () => {
  it('is the ciphertext, by as many different ones as the chain demands', () => {
    const signatures = [sign(third), sign(second)];
    assert.deepEqual(check(signatures), { handle: binding.handle, inputProof: hexlify(proofOf(signatures)) });
    assert.equal(check([sign(first), sign(second), sign(third)]).handle, binding.handle);
  });

  it('is not signed twice by signing it twice', () => {
    assert.throws(() => check([sign(first), sign(first)]), tooFew(1));
    assert.throws(() => check([sign(second), sign(second), sign(second)]), tooFew(1));
    assert.equal(check([sign(first), sign(first), sign(second)]).handle, binding.handle);
  });

  it('is not signed by strangers', () => {
    assert.throws(() => check([sign(first), sign(stranger)]), tooFew(1));
    assert.throws(() => check([sign(stranger)]), tooFew(0));
  });

  it('is not signed by nobody, also where the chain says that none is enough', () => {
    assert.throws(() => check([]), tooFew(0));
    assert.throws(() => check([], { threshold: 0 }), tooFew(0, 1));
    assert.throws(() => check([sign(first)], { threshold: 0, signers: [] }), tooFew(0, 1));
    assert.equal(check([sign(first)], { threshold: 0 }).handle, binding.handle);
  });

  it('counts a signer that the chain lists twice once', () => {
    const signers = [first.address, first.address.toLowerCase()];
    assert.throws(() => check([sign(first), sign(first)], { signers }), tooFew(1));
  });

  it('is this handle, user, consumer, chain and gateway', () => {
    const other = stranger.address;
    for (const changed of [
      { ctHandles: [`0x${'ac'.repeat(32)}`] },
      { ctHandles: [binding.handle, binding.handle] },
      { userAddress: other },
      { contractAddress: other },
      { contractChainId: 1n },
      { extraData: '0x' },
    ]) {
      assert.throws(() => check([sign(first, changed), sign(second)]), tooFew(1));
    }
    assert.throws(() => check([sign(first, {}, 1n), sign(second)]), tooFew(1));
  });

  it('is signed the way that contracts take: v 27 or 28, s in the lower half, no zeros', () => {
    const signature = sign(first);
    const bare = `${signature.slice(0, -2)}${signature.endsWith('1b') ? '00' : '01'}`;
    for (const bad of [bare, malleated(signature), `0x${'00'.repeat(64)}1b`]) {
      assert.throws(() => check([bad, sign(second)]), tooFew(1));
    }
  });

  it('has one handle, that of the ciphertext, in the answer and in the proof', () => {
    const signatures = [sign(first), sign(second)];
    const other = getBytes(`0x${'ac'.repeat(32)}`);
    const at = (handles: readonly Uint8Array[], proof = proofOf(signatures)) =>
      attested(handles, proof, binding, coprocessors);
    assert.throws(() => at([]), new Error('0 handles for one value'));
    assert.throws(() => at([handle, handle]), new Error('2 handles for one value'));
    assert.throws(() => at([other]), new Error('the handle is not that of the ciphertext'));
    assert.throws(
      () => at([handle], proofOf(signatures, [`0x${'ac'.repeat(32)}`])),
      new Error('the handle is not that of the ciphertext'),
    );
    const odd = new Error('the input proof is not one of a single handle');
    assert.throws(() => at([handle], proofOf(signatures, [binding.handle, binding.handle])), odd);
    assert.throws(() => at([handle], proofOf(signatures).subarray(0, -20)), odd);
    assert.throws(() => at([handle], new Uint8Array()), odd);
  });
});
