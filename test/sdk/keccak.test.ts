import assert from 'node:assert/strict';
import { it } from 'node:test';
import { keccak256 as ethersKeccak256 } from 'ethers';
import fc from 'fast-check';
import { keccak256, toHex } from '../../lib/eth/hex.ts';

/** keccak256 agrees with ethers. */

const counting = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => i % 251);

// The first is the well-known hash of nothing; the lengths surround the block of 136 bytes.
const VECTORS: [Uint8Array, string][] = [
  [new Uint8Array(), '0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470'],
  [counting(135), '0xcbdfd9dee5faad3818d6b06f95a219fd290b0e1706f6a82e5a595b9ce9faca62'],
  [counting(136), '0x7ce759f1ab7f9ce437719970c26b0a66ff11fe3e38e17df89cf5d29c7d7f807e'],
  [counting(1300), '0x4e9f9b6054891bf3dabc2b5917e457a0c0429a3a5c5dc6912271ec921cc06d17'],
];

it('keccak256 gives the known hashes', () => {
  for (const [bytes, hash] of VECTORS) assert.equal(toHex(keccak256(bytes)), hash);
});

it('keccak256 agrees with ethers on any bytes and keeps nothing of the last call', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat(20), (bytes, offset) => {
      const view = bytes.subarray(Math.min(offset, bytes.length));
      const first = keccak256(view);
      const text = toHex(first);
      keccak256(bytes);
      assert.equal(text, ethersKeccak256(view));
      assert.equal(toHex(first), text);
      assert.equal(first.byteLength, 32);
    }),
  );
});
