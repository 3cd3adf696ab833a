/** Signatures of other forms are read, and become those of the service. */
import assert from 'node:assert/strict';
import { createECDH, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1';
import { computeAddress, SigningKey } from 'ethers';
import fc from 'fast-check';
import { CURVE_ORDER } from '../../lib/eth/eip191.ts';
import { addressOfSpki, parseDerSignature, recoverableSignature } from '../../lib/eth/signatures.ts';
import { toBytes, toHex } from '../../plugins-sdk/index.ts';
import { normalizedSignature } from '../../plugins-sdk/signing.ts';

const hexOf = (scalar: bigint) => scalar.toString(16).padStart(64, '0');
const scalars = fc.bigInt({ min: 1n, max: CURVE_ORDER - 1n });
const hashes = fc.uint8Array({ minLength: 32, maxLength: 32 });
/** r and s of any length, short ones too. */
const numbers = fc.oneof(scalars, fc.bigInt({ min: 1n, max: 1n << 140n }), fc.constantFrom(1n, 0x7fn, 0x80n, 0xffn));

/** A signature by ethers, in parts. */
function signed(key: bigint, hash: Uint8Array) {
  const signer = new SigningKey(`0x${hexOf(key)}`);
  const { r, s, yParity, serialized } = signer.sign(hash);
  return { r: BigInt(r), s: BigInt(s), yParity, serialized, address: computeAddress(signer) as `0x${string}` };
}

describe('a DER-encoded signature', () => {
  it('is read as noble wrote it, whatever the lengths', () => {
    fc.assert(
      fc.property(numbers, numbers, (r, s) => {
        const der = new secp256k1.Signature(r, s).toDERRawBytes();
        assert.equal(toHex(parseDerSignature(der)), `0x${hexOf(r)}${hexOf(s)}`);
      }),
    );
  });

  it('is refused when anything about it is different', () => {
    const message = 'the signature is not DER-encoded (Ecdsa-Sig-Value)';
    const refused = (hex: string) => assert.throws(() => parseDerSignature(Buffer.from(hex, 'hex')), { message }, hex);
    assert.equal(toHex(parseDerSignature(Buffer.from('3006020101020101', 'hex'))), `0x${hexOf(1n)}${hexOf(1n)}`);
    for (const hex of [
      ...['', '30', '3000', '300602010102010', '30060201010201', '300602010102010100', '3106020101020101'],
      // Not the shortest form: a padded number, a long length, an indefinite length.
      ...['300702020001020101', '308106020101020101', '30800201010201010000', '30070281010102010100'],
      // Negative, empty, 33 bytes, another type.
      ...['3006020181020101', '300502000201', `302602210${'1'.repeat(65)}020101`, '3006040101020101'],
      // Numbers that no signature has: 0, the curve order.
      ...['3006020100020101', '3006020101020100', `3026022100${hexOf(CURVE_ORDER)}020101`],
    ])
      refused(hex);
  });

  it('is read or refused, and never more, whatever the bytes', () => {
    const near = fc.tuple(numbers, numbers, fc.nat(71), fc.nat(255)).map(([r, s, at, byte]) => {
      const der = new secp256k1.Signature(r, s).toDERRawBytes();
      der[at % der.length] = byte;
      return der;
    });
    fc.assert(
      fc.property(fc.oneof(near, fc.uint8Array({ maxLength: 80 })), (bytes) => {
        let read: Uint8Array | undefined;
        try {
          read = parseDerSignature(bytes);
        } catch (error) {
          assert.equal(String(error), 'Error: the signature is not DER-encoded (Ecdsa-Sig-Value)');
        }
        // What was read has one encoding: the bytes that were given.
        if (read === undefined) return;
        const [r, s] = [BigInt(toHex(read.subarray(0, 32))), BigInt(toHex(read.subarray(32)))];
        assert.deepEqual(Buffer.from(new secp256k1.Signature(r, s).toDERRawBytes()), Buffer.from(bytes));
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a signature without recovery id', () => {
  it('becomes that of ethers, whichever s it has', () => {
    fc.assert(
      fc.property(scalars, hashes, fc.boolean(), (key, hash, high) => {
        const { r, s, serialized, address } = signed(key, hash);
        const rs = toBytes(`0x${hexOf(r)}${hexOf(high ? CURVE_ORDER - s : s)}`);
        assert.equal(recoverableSignature(hash, rs, address), serialized);
      }),
      { numRuns: 60 },
    );
  });

  it('is refused when it is by another key, of another hash, or no signature', () => {
    const hash = new Uint8Array(32).fill(5);
    const { r, s, address } = signed(77n, hash);
    const { address: other } = signed(78n, hash);
    const of = (one: bigint, two: bigint) => toBytes(`0x${hexOf(one)}${hexOf(two)}`);
    const refused = (message: string, ...args: Parameters<typeof recoverableSignature>) =>
      assert.throws(() => recoverableSignature(...args), { message });
    refused(`the signature is not by ${other}`, hash, of(r, s), other);
    refused(`the signature is not by ${address}`, new Uint8Array(32), of(r, s), address);
    // 5 is the x of no point on the curve.
    refused(`the signature is not by ${address}`, hash, of(5n, s), address);
    refused('r must be 0 < r < CURVE.n', hash, of(0n, s), address);
    refused('r must be 0 < r < CURVE.n', hash, of(CURVE_ORDER, s), address);
    refused('s must be 0 < s < CURVE.n', hash, of(r, 0n), address);
    refused('s must be 0 < s < CURVE.n', hash, of(r, 2n ** 256n - 1n), address);
    refused('compactSignature expected 64 bytes, got 63', hash, of(r, s).subarray(1), address);
  });
});

describe('a signature with its recovery id', () => {
  it('becomes that of ethers, whatever s and v it has', () => {
    fc.assert(
      fc.property(scalars, hashes, fc.boolean(), fc.boolean(), fc.boolean(), (key, hash, high, bare, upper) => {
        const { r, s, yParity, serialized } = signed(key, hash);
        const v = (bare ? 0 : 27) + (high ? 1 - yParity : yParity);
        const digits = `${hexOf(r)}${hexOf(high ? CURVE_ORDER - s : s)}${v.toString(16).padStart(2, '0')}`;
        assert.equal(normalizedSignature(`0x${upper ? digits.toUpperCase() : digits}`), serialized);
      }),
      { numRuns: 60 },
    );
  });

  it('is refused when it is none', () => {
    const half = '11'.repeat(64);
    for (const none of [
      undefined,
      null,
      1,
      '',
      '0x',
      half,
      `0x${half}`,
      `0x${half}1b00`,
      `0x${half}zz`,
      [`0x${half}1b`],
    ])
      assert.throws(() => normalizedSignature(none), { message: 'the signature is not 65 bytes of 0x hex' });
    for (const v of ['02', '1a', '1d', '25', 'ff'])
      assert.throws(() => normalizedSignature(`0x${half}${v}`), {
        message: 'the v of the signature is none of 0, 1, 27 and 28',
      });
  });
});

describe('the address of a public key in DER', () => {
  it('is that of ethers', () => {
    fc.assert(
      fc.property(scalars, (key) => {
        const ecdh = createECDH('secp256k1');
        ecdh.setPrivateKey(hexOf(key), 'hex');
        const point = ecdh.getPublicKey();
        const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
        const jwk = { kty: 'EC', crv: 'secp256k1', x: String(x), y: String(y) };
        const der = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'der' });
        assert.equal(addressOfSpki(der), computeAddress(`0x${hexOf(key)}`));
      }),
      { numRuns: 20 },
    );
  });

  it('is none of another curve or kind, or of no key', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const message = 'the public key is not on the curve secp256k1';
    for (const der of [
      publicKey.export({ type: 'spki', format: 'der' }),
      generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }),
      generateKeyPairSync('ec', { namedCurve: 'brainpoolP256r1' }).publicKey.export({ type: 'spki', format: 'der' }),
      new Uint8Array(),
      new Uint8Array(88).fill(48),
    ])
      assert.throws(() => addressOfSpki(der), { message });
  });
});
