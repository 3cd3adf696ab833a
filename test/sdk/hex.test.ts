/** Hex texts are told, made and read as ethers does. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getAddress } from 'ethers';
import fc from 'fast-check';
import { checksumAddress, isAddress, isBytes32, isHex, toBytes, toHex } from '../../lib/eth/hex.ts';

const NOT_HEX = ['', '0', '0x0', '0xg0', '00', '0X00', ' 0x00', '0x00 ', '0x00\n', '0x0\n', '0x\u0130\u0130', '0x００'];
const NO_STRINGS = [undefined, null, 0, 0x00n, {}, [], ['0x00'], new Uint8Array(1), { toString: () => '0x00' }];

// The examples of EIP-55: all upper, all lower, and mixed.
const EIP_55 = [
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77',
  '0x27b1fdb04752bbc536007a920d24acb045561c26',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
];

describe('isHex', () => {
  it('accepts an even number of digits of either case, none included', () => {
    for (const value of ['0x', '0x00', '0xaBcDeF', `0x${'f0'.repeat(4_000_000)}`]) assert.equal(isHex(value), true);
  });

  it('refuses everything else', () => {
    for (const value of [...NOT_HEX, ...NO_STRINGS]) assert.equal(isHex(value), false, JSON.stringify(String(value)));
  });
});

describe('isBytes32', () => {
  it('wants exactly 64 digits', () => {
    assert.equal(isBytes32(`0x${'aB'.repeat(32)}`), true);
    for (const digits of ['', 'ab'.repeat(31), 'ab'.repeat(33), `${'ab'.repeat(31)}zz`, `${'ab'.repeat(32)}\n`]) {
      assert.equal(isBytes32(`0x${digits}`), false, digits);
    }
    for (const value of NO_STRINGS) assert.equal(isBytes32(value), false);
  });
});

describe('toHex and toBytes', () => {
  it('write lower case and read both', () => {
    assert.equal(toHex(Uint8Array.of(0, 1, 0xab, 0xff)), '0x0001abff');
    assert.deepEqual([...toBytes('0x0001aBFf')], [0, 1, 0xab, 0xff]);
    assert.equal(toHex(new Uint8Array()), '0x');
    assert.throws(() => toHex('secret' as never), /^TypeError: expected bytes$/);
    assert.equal(toBytes('0x').length, 0);
  });

  it('see only the part of the memory that a view shows', () => {
    assert.equal(toHex(Uint8Array.of(1, 2, 3, 4).subarray(1, 3)), '0x0203');
  });

  it('are each other’s inverse', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => Buffer.compare(toBytes(toHex(bytes)), bytes) === 0),
    );
  });

  it('refuse what is no hex without showing it', () => {
    for (const value of [...NOT_HEX, ...NO_STRINGS]) {
      const act = (): unknown => Reflect.apply(toBytes, undefined, [value]);
      assert.throws(act, { name: 'Error', message: 'expected 0x and an even number of hex digits' });
    }
  });
});

describe('checksumAddress and isAddress', () => {
  it('agree with the examples of EIP-55', () => {
    for (const address of EIP_55) {
      assert.equal(checksumAddress(address), address);
      assert.equal(checksumAddress(address.toLowerCase()), address);
      assert.equal(checksumAddress(`0x${address.slice(2).toUpperCase()}`), address);
      assert.equal(isAddress(address), true);
      assert.equal(isAddress(address.toLowerCase()), true);
    }
  });

  it('agree with ethers on any address', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), (bytes) => {
        assert.equal(checksumAddress(toHex(bytes)), getAddress(toHex(bytes)));
      }),
    );
  });

  it('refuse a wrong checksum and name the address', () => {
    const wrong = '0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
    assert.equal(isAddress(wrong), false);
    assert.throws(() => checksumAddress(wrong), {
      message: 'wrong address checksum (EIP-55): "0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed"',
    });
  });

  it('refuse what has not the shape of an address and name it', () => {
    const digits = EIP_55[2]?.slice(2) ?? '';
    for (const value of ['', '0x', digits, `0X${digits}`, `0x${digits}00`, `0x${digits.slice(2)}`, `0x${digits}\n`]) {
      assert.equal(isAddress(value), false, value);
      const message = `not an address (0x and 40 hex digits): ${JSON.stringify(value)}`;
      assert.throws(() => checksumAddress(value), { message });
    }
    for (const value of NO_STRINGS) assert.equal(isAddress(value), false);
  });

  it('refuse what is no string at all', () => {
    const act = (): unknown => Reflect.apply(checksumAddress, undefined, [undefined]);
    assert.throws(act, { message: 'not an address (0x and 40 hex digits): "undefined"' });
  });

  it('show no more than the beginning of a long value, on one line', () => {
    const message = `not an address (0x and 40 hex digits): "a\\n${'b'.repeat(76)}…`;
    assert.throws(() => checksumAddress(`a\n${'b'.repeat(1000)}`), { message });
  });
});
