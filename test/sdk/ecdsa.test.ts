/** Each arithmetic of signatures gives and refuses the same. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type EcdsaBackend, ecdsaOf } from '../../lib/eth/ecdsa.ts';
import { toBytes } from '../../lib/eth/hex.ts';

/** The x of the curve's generator G, whose y is even. */
const X = '79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
const S = '6e9375bca7989cf0e99c803ddee13076c8b72834e7d6a57efeb44078759c24b6';

for (const backend of ['secp256k1', 'ethers'] satisfies EcdsaBackend[]) {
  it(`${backend}: refuses a signature whose key would be the point at infinity`, () => {
    const { recover } = ecdsaOf(backend);
    // Recovered is (s·R − hash·G) / r: with R = G nothing is left when the hash is s.
    assert.throws(() => recover(toBytes(`0x${S}`), toBytes(`0x${X}${S}`), 0));
    assert.equal(recover(toBytes(`0x${S}`), toBytes(`0x${X}${S}`), 1).length, 65);
  });
}
