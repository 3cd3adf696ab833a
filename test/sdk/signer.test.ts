/** A local key signs byte for byte as ethers does, and a malformed one is refused. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import { Wallet } from 'ethers';
import fc from 'fast-check';
import { defaultBackend, type EcdsaBackend } from '../../lib/eth/ecdsa.ts';
import { CURVE_ORDER, recoverAddress } from '../../lib/eth/eip191.ts';
import { toBytes } from '../../lib/eth/hex.ts';
import { personalStatement } from '../../lib/eth/statements.ts';
import { createSigner, DERIVATION_PATH, signerFromEnvironment } from '../../plugins-sdk/signing/local-key.ts';
import { hide } from '../support/hide.ts';

const DIGITS = '4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318';
const PRIVATE_KEY = `0x${DIGITS}`;
const ADDRESS = '0x2c7536E3605D9C16a7a3D7b1898e529396a65c23';
const MNEMONIC = 'test test test test test test test test test test test junk';
const MNEMONIC_ADDRESS = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const KEY_RULE = 'must be 32 bytes of hex, not zero and below the order of secp256k1';

// Signatures of 32 equal bytes, from an implementation written apart (Python integers, RFC 6979 by hand).
const VECTORS: [number, string][] = [
  [
    0,
    '0x2b19aa718b91db2b51c5c94b1444566413bfdab390e8f844bb677146386f42e52955d3542c8c4b174b3c5f8cbdd8d40850a4318b0132aedaf3354bd0c746adfc1b',
  ],
  [
    1,
    '0x1a3bcd7ca050da38c0550277547a2699f196bb947e573dd4e58d076eb8a7d0e33a3bcd3b7d690a35ce7921a983a9dd0908798be334e9d54cbbc8827f362081a91b',
  ],
  [
    3,
    '0xa4b95362f3db1049a0e3329a34a42dae71e398ca2b3f6a8b796f5c64a756345e2b481b89d4564b62bb8e1dbc295c62cb21c0710b6578e679218b30c2fe3748841c',
  ],
];

const hexOf = (scalar: bigint): string => scalar.toString(16).padStart(64, '0');

const INVALID_KEYS = [
  '',
  '0x',
  DIGITS.slice(2),
  `${DIGITS}00`,
  `0x0x${DIGITS}`,
  `0X${DIGITS}`,
  ` ${DIGITS}`,
  `${DIGITS}\n`,
  `${DIGITS.slice(0, 62)}zz`,
  hexOf(0n),
  hexOf(CURVE_ORDER),
  hexOf(2n ** 256n - 1n),
];

function errorOf(act: () => unknown): Error {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof Error);
    return error;
  }
  return assert.fail('nothing was thrown');
}

/** What a log could make of the error, its cause and its stack included. */
function everythingIn(error: Error): string {
  return inspect(error, { showHidden: true, depth: null });
}

for (const backend of ['secp256k1', 'ethers'] satisfies EcdsaBackend[]) {
  describe(`createSigner with ${backend}`, () => {
    const signer = createSigner(PRIVATE_KEY, backend);

    it('knows its address and backend', () => {
      assert.equal(signer.address, ADDRESS);
      assert.equal(signer.backend, backend);
    });

    it('gives the known signatures', () => {
      for (const [byte, signature] of VECTORS) {
        assert.equal(signer.sign(personalStatement(new Uint8Array(32).fill(byte))), signature);
      }
    });

    it('signs byte for byte as ethers does, for any key and digest', () => {
      const scalars = fc.bigInt({ min: 1n, max: CURVE_ORDER - 1n });
      fc.assert(
        fc.property(scalars, fc.uint8Array({ minLength: 32, maxLength: 32 }), (scalar, digest) => {
          const wallet = new Wallet(`0x${hexOf(scalar)}`);
          const own = createSigner(hexOf(scalar), backend);
          assert.equal(own.address, wallet.address);
          const signature = own.sign(personalStatement(digest));
          assert.equal(signature, wallet.signMessageSync(digest));
          assert.equal(recoverAddress(digest, signature, backend), wallet.address);
        }),
        { numRuns: 40, examples: [[1n, new Uint8Array(32)]] },
      );
    });

    it('takes the largest key of the curve', () => {
      const address = '0x80C0dbf239224071c59dD8970ab9d542E3414aB2';
      assert.equal(createSigner(hexOf(CURVE_ORDER - 1n), backend).address, address);
    });

    it('takes a key without 0x and in upper case', () => {
      assert.equal(createSigner(DIGITS, backend).address, ADDRESS);
      assert.equal(createSigner(`0x${DIGITS.toUpperCase()}`, backend).address, ADDRESS);
    });

    it('does not show its key and does not let itself be changed', () => {
      const key = Buffer.from(DIGITS, 'hex');
      const shown = [
        inspect(signer, { showHidden: true, depth: null, getters: true }),
        inspect(Object.getOwnPropertyDescriptors(signer), { showHidden: true, depth: null }),
        JSON.stringify(signer),
        signer.sign.toString(),
        String(signer),
      ].join('\n');
      for (const form of [DIGITS, DIGITS.slice(0, 16), key.toString('base64'), [...key].slice(0, 8).join(', ')]) {
        assert.ok(!shown.includes(form), form);
      }
      assert.deepEqual(Object.keys(signer).sort(), ['address', 'backend', 'sign']);
      assert.ok(Object.isFrozen(signer));
    });
  });
}

describe('createSigner', () => {
  it('uses the fastest backend there is', () => {
    assert.equal(createSigner(PRIVATE_KEY).backend, defaultBackend);
  });

  it('leaves no copy of its key in the memory that small buffers share', () => {
    const digits = 'c0ffee'.repeat(10).padEnd(64, '7');
    const { buffer: before } = Buffer.allocUnsafe(1);
    createSigner(digits);
    const key = Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    for (const pool of [before, Buffer.allocUnsafe(1).buffer]) assert.equal(Buffer.from(pool).indexOf(key), -1);
  });

  it('refuses what is no private key and never shows it', () => {
    for (const key of INVALID_KEYS) {
      const error = errorOf(() => createSigner(key));
      assert.equal(error.message, `the private key ${KEY_RULE}`);
      if (key.length > 2) assert.ok(!everythingIn(error).includes(key.trim()), key);
    }
  });

  it('refuses what is no string', () => {
    for (const key of [undefined, null, 1, 1n, toBytes(`0x${DIGITS}`), [PRIVATE_KEY]]) {
      const act = (): unknown => Reflect.apply(createSigner, undefined, [key]);
      assert.throws(act, { message: `the private key ${KEY_RULE}` });
    }
  });

  const without: [string[], EcdsaBackend, EcdsaBackend[]][] = [[['secp256k1/bindings'], 'ethers', ['secp256k1']]];
  for (const [hidden, backend, missing] of without) {
    it(`signs with ${backend} without ${missing.join(' and ')}, and says so when asked for one of those`, () => {
      const script = `
        import { createSigner } from './plugins-sdk/signing/local-key.ts';
        import { recoverAddress } from './lib/eth/eip191.ts';
        import { personalStatement } from './lib/eth/statements.ts';
        const signer = createSigner('${PRIVATE_KEY}');
        const digest = new Uint8Array(32);
        const signature = signer.sign(personalStatement(digest));
        const messages = [];
        for (const backend of ${JSON.stringify(missing)}) {
          for (const act of [
            () => createSigner('${PRIVATE_KEY}', backend),
            () => recoverAddress(digest, signature, backend),
          ]) {
            try { act(); } catch (error) { messages.push(error.message); }
          }
        }
        const recovered = recoverAddress(digest, signature);
        console.log(JSON.stringify({ backend: signer.backend, signature, recovered, messages }));`;
      const args = ['--import', 'tsx', ...hide(...hidden), '--input-type=module', '--eval', script];
      const root = join(import.meta.dirname, '..', '..');
      const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
      const messages = missing.map((name) => `the ECDSA backend ${name} is not available`);
      assert.deepEqual(JSON.parse(stdout || JSON.stringify(stderr)), {
        backend,
        signature: VECTORS[0]?.[1],
        recovered: ADDRESS,
        messages: messages.flatMap((message) => [message, message]),
      });
    });
  }
});

describe('signerFromEnvironment', () => {
  it('takes the private key', () => {
    assert.equal(signerFromEnvironment({ SERVICE_PRIVATE_KEY: PRIVATE_KEY }).address, ADDRESS);
    assert.equal(signerFromEnvironment({ SERVICE_PRIVATE_KEY: DIGITS, SERVICE_MNEMONIC: '' }).address, ADDRESS);
    assert.equal(signerFromEnvironment({ SERVICE_PRIVATE_KEY: DIGITS, SERVICE_MNEMONIC: undefined }).address, ADDRESS);
  });

  it('takes the first account of the mnemonic', () => {
    const abandon = `${'abandon '.repeat(11)}about`;
    assert.equal(DERIVATION_PATH, "m/44'/60'/0'/0/0");
    assert.equal(signerFromEnvironment({ SERVICE_MNEMONIC: MNEMONIC }).address, MNEMONIC_ADDRESS);
    assert.equal(
      signerFromEnvironment({ SERVICE_MNEMONIC: abandon }).address,
      '0x9858EfFD232B4033E47d90003D41EC34EcaEda94',
    );
  });

  it('lets the mnemonic win when both are set', () => {
    const env = { SERVICE_PRIVATE_KEY: PRIVATE_KEY, SERVICE_MNEMONIC: MNEMONIC };
    assert.equal(signerFromEnvironment(env).address, MNEMONIC_ADDRESS);
    assert.equal(signerFromEnvironment({ ...env, SERVICE_PRIVATE_KEY: 'nonsense' }).address, MNEMONIC_ADDRESS);
  });

  it('wants one of them', () => {
    for (const env of [{}, { SERVICE_PRIVATE_KEY: '' }, { SERVICE_PRIVATE_KEY: '', SERVICE_MNEMONIC: '' }]) {
      const message = 'SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC must be set';
      assert.throws(() => signerFromEnvironment(env), { name: 'Error', message });
    }
  });

  it('names SERVICE_PRIVATE_KEY when it is invalid and never shows it', () => {
    for (const key of INVALID_KEYS.filter((invalid) => invalid !== '')) {
      const error = errorOf(() => signerFromEnvironment({ SERVICE_PRIVATE_KEY: key }));
      assert.equal(error.message, `SERVICE_PRIVATE_KEY ${KEY_RULE}`);
      if (key.length > 2) assert.ok(!everythingIn(error).includes(key.trim()), key);
    }
  });

  it('names SERVICE_MNEMONIC when it is invalid, never shows it and does not fall back to the key', () => {
    const invalid = [' ', 'zebra', 'zebra '.repeat(12).trim(), 'zebra '.repeat(11), `${'zebra '.repeat(11)}zebr4`];
    for (const mnemonic of invalid) {
      const env = { SERVICE_MNEMONIC: mnemonic, SERVICE_PRIVATE_KEY: PRIVATE_KEY };
      const error = errorOf(() => signerFromEnvironment(env));
      assert.equal(
        error.message,
        'SERVICE_MNEMONIC must be a BIP-39 mnemonic: 12 to 24 English words with a valid checksum',
      );
      assert.doesNotMatch(everythingIn(error), /zeb/);
      assert.equal(error.cause, undefined);
    }
  });
});
