/** Digests and signatures are those that ethers makes. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hashMessage, solidityPackedKeccak256, verifyMessage, Wallet } from 'ethers';
import fc from 'fast-check';
import type { EcdsaBackend } from '../../lib/eth/ecdsa.ts';
import {
  addressOfPublicKey,
  CURVE_ORDER,
  dataDigest,
  paymentDigest,
  personalDigest,
  personalTextDigest,
  recoverAddress,
  recoverTextSigner,
} from '../../lib/eth/eip191.ts';
import { type Hex, toBytes, toHex } from '../../lib/eth/hex.ts';
import { anyCharacter } from '../support/any-character.ts';

// All vectors of this file come from an implementation written apart (Python integers), not from a library in use here.
const PRIVATE_KEY = '0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318';
const ADDRESS = '0x2c7536E3605D9C16a7a3D7b1898e529396a65c23';
const ENDPOINT_ID = '0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';
const DATA = toBytes(`0x${3_000_120_000n.toString(16).padStart(64, '0')}`);
const DIGEST = '0xd09a5499c60e7195f9a9cc91ad283624ffa4ac6827b229e216c8ba90193ae008';
const R = '507bb2257e85bf4b02826124de1f044e347303c83893d5c153d1bf9b6e906157';
const S = '6e9375bca7989cf0e99c803ddee13076c8b72834e7d6a57efeb44078759c24b6';
const SIGNATURE: Hex = `0x${R}${S}1b`;
const SIGNATURE_OF_THREES: Hex =
  '0xa4b95362f3db1049a0e3329a34a42dae71e398ca2b3f6a8b796f5c64a756345e2b481b89d4564b62bb8e1dbc295c62cb21c0710b6578e679218b30c2fe3748841c';

const BACKENDS: EcdsaBackend[] = ['secp256k1', 'ethers'];

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const word = (value: bigint): string => value.toString(16).padStart(64, '0');

describe('dataDigest', () => {
  it('gives the known digests', () => {
    const digest = (timestamp: number | bigint, data = DATA): Hex => toHex(dataDigest(ENDPOINT_ID, timestamp, data));
    assert.equal(digest(1_700_000_000), DIGEST);
    assert.equal(digest(1_700_000_000n), DIGEST);
    assert.equal(
      digest(1_700_000_000, Buffer.alloc(0)),
      '0x79a89a9029a4bf7d22b64c16661d53e23a8207dd4f9190cd00483eafd6edfa45',
    );
    assert.equal(digest(0), '0x573795d331f35ce024d8b58dedfef72a3a4dd08ac71bf7dfb0df549d282a2af9');
    assert.equal(digest(2 ** 32), '0x63dec5fa6a42bd5872573de922ee27e5f3da8074bdf43c1ec052ae35be02ac49');
    assert.equal(digest(Number.MAX_SAFE_INTEGER), '0x2d0207f2fe9b9f7d9d282d80f41e8791e88be661e2224bdf34de9c64825797a8');
    assert.equal(digest(2n ** 256n - 1n), '0x7e741da754ee60688fc42a58aa4962f21b7b2293928a9787235f7ef3208c4b12');
  });

  it('agrees with the packed encoding of ethers', () => {
    const timestamps = fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }));
    fc.assert(
      fc.property(bytes32, timestamps, fc.uint8Array({ maxLength: 400 }), (id, timestamp, data) => {
        const expected = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [id, timestamp, data]);
        assert.equal(toHex(dataDigest(id, timestamp, data)), expected);
        assert.equal(toHex(dataDigest(toHex(id), timestamp, data)), expected);
      }),
    );
  });

  it('refuses an endpoint ID that is not 32 bytes', () => {
    const ids: (Hex | Uint8Array)[] = ['0x', `0x${'00'.repeat(31)}`, `0x${'00'.repeat(33)}`, '0xzz', Buffer.alloc(31)];
    for (const id of ids) {
      assert.throws(() => dataDigest(id, 1, DATA), { name: 'RangeError', message: 'endpointId must be 32 bytes' });
    }
  });

  it('refuses a timestamp that is no uint256', () => {
    for (const timestamp of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      const message = 'timestamp must be a non-negative safe integer';
      assert.throws(() => dataDigest(ENDPOINT_ID, timestamp, DATA), { name: 'RangeError', message }, String(timestamp));
    }
    for (const timestamp of [-1n, 2n ** 256n]) {
      const message = 'timestamp must be a uint256';
      assert.throws(() => dataDigest(ENDPOINT_ID, timestamp, DATA), { name: 'RangeError', message });
    }
  });
});

describe('paymentDigest', () => {
  it('gives the known digests', () => {
    assert.equal(
      toHex(paymentDigest(ADDRESS, ENDPOINT_ID, 1_700_000_600)),
      '0x04adc13412f95ae130be200e9095c0ac8616cfc7397d8afa907c496bdf1e5b75',
    );
    assert.equal(
      toHex(paymentDigest(ADDRESS, ENDPOINT_ID, Number.MAX_SAFE_INTEGER)),
      '0xe3de54c4cb95b26514d05e0386cf2566193984c43283435abfab202c601aa3df',
    );
  });

  it('agrees with the packed encoding of ethers', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), bytes32, fc.maxSafeNat(), (node, id, expiresAt) => {
        const values = [toHex(node), toHex(id), expiresAt];
        const expected = solidityPackedKeccak256(['address', 'bytes32', 'uint64'], values);
        assert.equal(toHex(paymentDigest(toHex(node), toHex(id), expiresAt)), expected);
      }),
    );
  });

  it('refuses what does not fit its place', () => {
    assert.throws(() => paymentDigest(`${ADDRESS}00`, ENDPOINT_ID, 1), { message: 'node must be 20 bytes' });
    assert.throws(() => paymentDigest(ADDRESS, ADDRESS, 1), { message: 'endpointId must be 32 bytes' });
    for (const expiresAt of [-1, 0.5, Number.NaN, 2 ** 53, 2 ** 64]) {
      const message = 'expiresAt must be a non-negative safe integer';
      assert.throws(() => paymentDigest(ADDRESS, ENDPOINT_ID, expiresAt), { name: 'RangeError', message });
    }
  });
});

describe('personalDigest', () => {
  it('gives the known hash', () => {
    const hash = '0x4e411124b5cd74006609a7f4d5f86ea5d96dc79ed2d3ff72d9ac0b82083f4d6c';
    assert.equal(toHex(personalDigest(toBytes(DIGEST))), hash);
  });

  it('agrees with ethers', () => {
    fc.assert(fc.property(bytes32, (digest) => toHex(personalDigest(digest)) === hashMessage(digest)));
  });

  it('refuses other lengths', () => {
    for (const length of [0, 31, 33]) {
      const message = 'digest must be 32 bytes';
      assert.throws(() => personalDigest(new Uint8Array(length)), { name: 'RangeError', message });
    }
  });
});

it('addressOfPublicKey takes the key of the private key 1, the generator of the curve', () => {
  const x = '79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
  const y = '483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8';
  assert.equal(addressOfPublicKey(toBytes(`0x04${x}${y}`)), '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf');
});

for (const backend of BACKENDS) {
  describe(`recoverAddress with ${backend}`, () => {
    const refuses = (signature: Hex, message: string): void => {
      assert.throws(() => recoverAddress(toBytes(DIGEST), signature, backend), { name: 'Error', message });
    };

    it('finds the signer of known signatures, with either v', () => {
      assert.equal(recoverAddress(toBytes(DIGEST), SIGNATURE, backend), ADDRESS);
      assert.equal(recoverAddress(new Uint8Array(32).fill(3), SIGNATURE_OF_THREES, backend), ADDRESS);
    });

    it('reads upper-case digits', () => {
      assert.equal(recoverAddress(toBytes(DIGEST), `0x${SIGNATURE.slice(2).toUpperCase()}`, backend), ADDRESS);
    });

    it('finds the signer that ethers signed for, as ethers does', () => {
      fc.assert(
        fc.property(fc.bigInt({ min: 1n, max: CURVE_ORDER - 1n }), bytes32, (scalar, digest) => {
          const wallet = new Wallet(`0x${word(scalar)}`);
          const signature: Hex = `0x${wallet.signMessageSync(digest).slice(2)}`;
          assert.equal(recoverAddress(digest, signature, backend), wallet.address);
          assert.equal(verifyMessage(digest, signature), wallet.address);
        }),
        { numRuns: 25 },
      );
    });

    it('gives another address for another digest', () => {
      assert.notEqual(recoverAddress(new Uint8Array(32), SIGNATURE, backend), ADDRESS);
    });

    it('refuses another length', () => {
      const message = 'signature must be 65 bytes of 0x hex';
      for (const signature of ['0x', `0x${R}${S}`, `${SIGNATURE}00`, `${SIGNATURE}0`, `0x${R}${S}zz`] as const) {
        refuses(signature, message);
      }
      for (const signature of [undefined, null, 65, toBytes(SIGNATURE), SIGNATURE.slice(2)]) {
        const act = (): unknown => Reflect.apply(recoverAddress, undefined, [toBytes(DIGEST), signature, backend]);
        assert.throws(act, { message });
      }
    });

    it('refuses a v other than 27 and 28', () => {
      for (const v of ['00', '01', '1a', '1d', '1e', '25', 'ff']) {
        refuses(`0x${R}${S}${v}`, 'signature v must be 27 or 28');
      }
    });

    it('refuses r and s that are zero or not below the curve order', () => {
      for (const value of [0n, CURVE_ORDER, CURVE_ORDER + 1n, 2n ** 256n - 1n]) {
        refuses(`0x${word(value)}${S}1b`, 'signature r is out of range');
        refuses(`0x${R}${word(value)}1b`, 'signature s is out of range');
      }
    });

    it('refuses the other form of a valid signature, with s in the upper half', () => {
      const message = 'signature s is in the upper half of the curve order (EIP-2)';
      refuses(`0x${R}${word(CURVE_ORDER - BigInt(`0x${S}`))}1c`, message);
      refuses(`0x${R}${word(CURVE_ORDER / 2n + 1n)}1b`, message);
      refuses(`0x${R}${word(CURVE_ORDER - 1n)}1b`, message);
    });

    it('takes the largest s of the lower half', () => {
      assert.match(
        recoverAddress(toBytes(DIGEST), `0x${R}${word(CURVE_ORDER / 2n)}1b`, backend),
        /^0x[0-9a-fA-F]{40}$/,
      );
    });

    it('refuses an r that is the x of no point', () => {
      refuses(`0x${word(5n)}${S}1b`, 'signature recovers to no public key');
    });

    it('refuses a digest that is not 32 bytes', () => {
      const message = 'digest must be 32 bytes';
      assert.throws(() => recoverAddress(new Uint8Array(31), SIGNATURE, backend), { name: 'RangeError', message });
    });
  });
}

it('all backends say the same of any signature', () => {
  const outcome = (digest: Uint8Array, signature: Hex, backend: EcdsaBackend): string => {
    try {
      return recoverAddress(digest, signature, backend);
    } catch (error) {
      return String(error);
    }
  };
  const scalar = fc.bigInt({ min: 0n, max: CURVE_ORDER / 2n });
  fc.assert(
    fc.property(bytes32, scalar, scalar, fc.constantFrom('1b', '1c'), (digest, r, s, v) => {
      const signature: Hex = `0x${word(r)}${word(s)}${v}`;
      const [native, ...others] = BACKENDS.map((backend) => outcome(digest, signature, backend));
      for (const other of others) assert.equal(other, native);
    }),
    { numRuns: 40, examples: [[new Uint8Array(32), 1n, 1n, '1b']] },
  );
});

it('the key of the vectors is the one that ethers derives the address from', () => {
  assert.equal(new Wallet(PRIVATE_KEY).address, ADDRESS);
});

describe('personal signatures of texts', () => {
  const texts = fc.string({ unit: anyCharacter, maxLength: 300 });

  it('the hash is that of ethers, counted in UTF-8 bytes', () => {
    // The example in web3's documentation of hashMessage.
    assert.equal(
      toHex(personalTextDigest('Hello World')),
      '0xa1de988600a42c4b4ab089b619297c17d53cffae5d5120d82d8a92d0bb3b78f2',
    );
    for (const text of ['', 'x'.repeat(9), 'é'.repeat(5), 'x'.repeat(32), 'x'.repeat(1_000_000)]) {
      assert.equal(toHex(personalTextDigest(text)), hashMessage(text));
    }
    fc.assert(fc.property(texts, (text) => assert.equal(toHex(personalTextDigest(text)), hashMessage(text))));
  });

  it('32 bytes of text hash as a digest of the same bytes', () => {
    const text = 'abcdefghijklmnopqrstuvwxyz012345';
    assert.deepEqual(personalTextDigest(text), personalDigest(Buffer.from(text)));
  });

  for (const backend of BACKENDS) {
    it(`${backend}: recovers whom verifyMessage of ethers recovers`, async () => {
      const wallet = new Wallet(PRIVATE_KEY);
      await fc.assert(
        fc.asyncProperty(texts, async (text) => {
          const signature = await wallet.signMessage(text);
          assert.ok(signature.startsWith('0x'));
          const signer = recoverTextSigner(text, `0x${signature.slice(2)}`, backend);
          assert.equal(signer, ADDRESS);
          assert.equal(signer, verifyMessage(text, signature));
        }),
        { numRuns: 20 },
      );
    });

    it(`${backend}: another text has another signer; a malformed signature has none`, () => {
      assert.notEqual(recoverTextSigner('another', SIGNATURE, backend), recoverTextSigner('text', SIGNATURE, backend));
      assert.throws(() => recoverTextSigner('text', '0x00', backend), /^Error: signature must be 65 bytes of 0x hex$/);
      assert.throws(() => recoverTextSigner('text', `0x${R}${S}00`, backend), /^Error: signature v must be 27 or 28$/);
      const s = word(CURVE_ORDER - BigInt(`0x${S}`));
      assert.throws(() => recoverTextSigner('text', `0x${R}${s}1c`, backend), /upper half of the curve order/);
    });
  }
});
