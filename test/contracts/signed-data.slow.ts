/** The Solidity library agrees with ethers and the verification module, and refuses every signature that does not count. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import {
  getBytes,
  hashMessage,
  keccak256,
  recoverAddress,
  Signature,
  SigningKey,
  solidityPackedKeccak256,
  TypedDataEncoder,
  toUtf8Bytes,
  Wallet,
} from 'ethers';
import fc from 'fast-check';
import { requestHashOf } from '../../verify/index.ts';
import { chainFor } from '../support/chain.ts';
import { suite } from '../support/lifetime.ts';
import { deploy, errorOf } from '../support/quorum.ts';
import { RECEIPT_DOMAIN, RECEIPT_TYPES } from '../support/receipts.ts';
import { compile } from '../support/solidity.ts';

const CURVE_ORDER = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;
const wallet = new Wallet(`0x${'11'.repeat(32)}`);
const DIGEST = keccak256('0x1234');
const word = (value: bigint) => value.toString(16).padStart(64, '0');
/** As `SignedData.Fault` numbers them. */
const FAULT = { length: 1, v: 2, s: 3, signer: 4 };
const hex = (bytes: { minLength: number; maxLength: number }) =>
  fc.uint8Array(bytes).map((value) => `0x${Buffer.from(value).toString('hex')}`);

const { SignedDataUser } = await compile('test/support/contracts/SignedDataUser.sol');

describe('SignedData.sol', async () => {
  const chain = await chainFor(suite);
  const user = await deploy(SignedDataUser, await chain.provider.getSigner(0));

  const call = (name: string, ...args: readonly unknown[]) => user.getFunction(name).staticCall(...args);

  it('digests what ethers packs', async () => {
    const answers = fc.tuple(
      hex({ minLength: 32, maxLength: 32 }),
      fc.maxSafeNat(),
      hex({ minLength: 0, maxLength: 200 }),
    );
    await fc.assert(
      fc.asyncProperty(answers, async ([id, timestamp, data]) => {
        const packed = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [id, timestamp, data]);
        assert.equal(await call('digest', id, timestamp, data), packed);
      }),
    );
  });

  it('recovers who signed a personal message, and the receipt’s typed data', async () => {
    assert.equal(await call('recover', DIGEST, await wallet.signMessage(getBytes(DIGEST))), wallet.address);
    const receipt = {
      endpointId: DIGEST,
      requestHash: keccak256('0x01'),
      dataHash: keccak256('0x02'),
      timestamp: 1_700_000_000,
    };
    const digest = await call('receiptDigest', ...Object.values(receipt));
    assert.equal(digest, TypedDataEncoder.hash(RECEIPT_DOMAIN, RECEIPT_TYPES, receipt));
    const signature = await wallet.signTypedData(RECEIPT_DOMAIN, RECEIPT_TYPES, receipt);
    assert.equal(await call('recoverReceipt', digest, signature), wallet.address);
  });

  describe('refuses', () => {
    const { r, s, v, serialized } = new SigningKey(wallet.privateKey).sign(hashMessage(getBytes(DIGEST)));
    const other = { 27: 28, 28: 27 }[v];
    const highS = `${r}${word(CURVE_ORDER - BigInt(s))}${other.toString(16)}`;
    const cases: Readonly<Record<string, readonly [signature: string, fault: number]>> = {
      'no bytes': ['0x', FAULT.length],
      '64 bytes (EIP-2098)': [Signature.from(serialized).compactSerialized, FAULT.length],
      '66 bytes': [`${serialized}00`, FAULT.length],
      'v 0': [`${serialized.slice(0, -2)}00`, FAULT.v],
      'v 29': [`${serialized.slice(0, -2)}1d`, FAULT.v],
      'high s': [highS, FAULT.s],
      'r 0': [`0x${word(0n)}${s.slice(2)}1b`, FAULT.signer],
      's 0': [`${r}${word(0n)}1b`, FAULT.signer],
      'r of the order': [`0x${word(CURVE_ORDER)}${s.slice(2)}1b`, FAULT.signer],
    };
    for (const [name, [signature, fault]] of Object.entries(cases)) {
      it(name, async () => {
        assert.equal(await errorOf(call('recover', DIGEST, signature), user.interface), `InvalidSignature(${fault})`);
        const zero = `0x${'00'.repeat(20)}`;
        assert.deepEqual([...(await call('tryRecover', DIGEST, signature))], [zero, BigInt(fault)]);
      });
    }

    it('the other half of what OpenZeppelin calls malleable, which ethers would recover', () => {
      assert.equal(recoverAddress(hashMessage(getBytes(DIGEST)), serialized), wallet.address);
      assert.throws(() => recoverAddress(hashMessage(getBytes(DIGEST)), highS), /non-canonical s/);
    });
  });

  it('recovers from any bytes whom OpenZeppelin recovers, and nobody else', async () => {
    const good = getBytes(await wallet.signMessage(getBytes(DIGEST)));
    const tail = fc.constantFrom('', '00', '1b', '1c', '1d');
    const signatures = fc.oneof(
      fc
        .tuple(fc.nat(64), fc.nat(255))
        .map(([place, byte]) => `0x${Buffer.from(good.with(place, byte)).toString('hex')}`),
      fc.tuple(hex({ minLength: 63, maxLength: 65 }), tail).map(([begin, end]) => begin + end),
    );
    await fc.assert(
      fc.asyncProperty(signatures, async (signature) => {
        const [signer] = await call('tryRecover', DIGEST, signature);
        assert.equal(signer, await call('recoverByOpenZeppelin', DIGEST, signature));
      }),
    );
  });

  it('takes for the middle of two what OpenZeppelin takes for their average', async () => {
    const most = 2n ** 255n - 1n;
    const integer = fc.oneof(fc.bigInt(-most - 1n, most), fc.bigInt(-3n, 3n), fc.constantFrom(-most - 1n, -most, most));
    await fc.assert(
      fc.asyncProperty(integer, integer, async (one, other) => {
        const average = await call('averageByOpenZeppelin', one, other);
        assert.deepEqual([await call('middle', [one, other]), average], [average, (one + other) / 2n]);
      }),
    );
  });

  it('hashes the request that a receipt is of', async () => {
    const parameters = { symbol: 'ETHUSD', window: 5 };
    assert.equal(await call('requestHash', '{"symbol":"ETHUSD","window":5}'), requestHashOf(parameters));
    assert.equal(await call('requestHash', '{}'), keccak256(toUtf8Bytes('{"parameters":{}}')));
  });

  it('quotes any text as RFC 8785 does', async () => {
    const all = Array.from({ length: 0x80 }, (_, code) => String.fromCharCode(code)).join('');
    assert.equal(await call('quote', all), canonicalize(all));
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (text) => {
        assert.equal(await call('quote', text), canonicalize(text));
      }),
    );
  });
});
