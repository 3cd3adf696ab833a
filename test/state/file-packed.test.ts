/** Texts that are packed in memory come out as they were. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { packed, unpacked } from '../../builtins/state-file/packed.ts';

const hex = (minLength: number) =>
  fc.uint8Array({ minLength, maxLength: 600 }).map((b) => Buffer.from(b).toString('hex'));
const part = fc.oneof(
  hex(0).map((text) => `0x${text}`),
  hex(16).map((text) => `0x${text.toUpperCase()}`),
  fc.constantFrom('0x', '\x01', '\x01\0', '\x01\x20', ':', 'redeemed ', 'ä', '\ud83d\ude00'),
  fc.string({ unit: 'binary', maxLength: 20 }),
);
const text = fc.array(part, { maxLength: 6 }).map((parts) => parts.join(''));

describe('texts of the state file in memory', () => {
  it('come back as they were, and so are never taken for others', () => {
    fc.assert(
      fc.property(text, (given) => {
        assert.equal(unpacked(packed(given)), given);
      }),
      { numRuns: 2000 },
    );
  });

  it('are half as long where they are a payment', () => {
    const payment = `x402/0x${'ab'.repeat(32)}:0x${'cd'.repeat(20)}`;
    assert.equal(packed(payment), `x402/\x01\x20${'\xab'.repeat(32)}:\x01\x14${'\xcd'.repeat(20)}`);
    assert.equal(packed(`redeemed 0x${'ef'.repeat(32)}`).length, 43);
  });
});
