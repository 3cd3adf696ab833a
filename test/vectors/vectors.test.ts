/** The test vectors are what all implementations make and refuse. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import {
  concat,
  hashMessage,
  keccak256,
  recoverAddress,
  solidityPackedKeccak256,
  toUtf8Bytes,
  verifyMessage,
  Wallet,
} from 'ethers';
import { recoverAddress as recoverSigner } from '../../lib/eth/eip191.ts';
import { isHex } from '../../lib/eth/hex.ts';
import { personalStatement } from '../../lib/eth/statements.ts';
import { createSigner } from '../../plugins-sdk/signing/local-key.ts';
import { verifyResponse } from '../../verify/index.ts';
import { type Vectors, vectors } from './generate.ts';

async function stored<N extends keyof Vectors>(name: N): Promise<Vectors[N]> {
  return JSON.parse(await readFile(new URL(name, import.meta.url), 'utf8'));
}

const names = ['canonical-json.json', 'signed-answers.json', 'endpoint-ids.json'] as const;
const texts = await stored('canonical-json.json');
const answers = await stored('signed-answers.json');
const ids = await stored('endpoint-ids.json');

describe('test vectors: what the service makes', async () => {
  const made = await vectors();
  for (const name of names) {
    it(`${name} is what it makes today`, async () => assert.deepEqual(await stored(name), made[name]));
  }
});

describe('test vectors: what other libraries make', () => {
  for (const { note, json, canonical, hash } of texts) {
    it(`canonical JSON: ${note}`, () => {
      const value: unknown = JSON.parse(json);
      // The library refuses lone surrogates, as RFC 8785 asks.
      if (/\\ud800"/.test(json)) assert.equal(canonical, JSON.stringify(value));
      else assert.equal(canonical, canonicalize(value));
      assert.equal(hash, keccak256(toUtf8Bytes(canonical)));
    });
  }

  for (const { note, response, signedData, digest, personalDigest } of answers.accepted) {
    it(`a signed answer: ${note}`, async () => {
      const wallet = new Wallet(answers.privateKey);
      assert.equal(answers.node, wallet.address);
      const { endpointId, timestamp, data, rawData, signature } = response;
      assert.equal(signedData, data ?? keccak256(toUtf8Bytes(canonicalize(rawData) ?? '')));
      const packed = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, signedData]);
      assert.equal(digest, packed);
      assert.equal(personalDigest, keccak256(concat([toUtf8Bytes('\x19Ethereum Signed Message:\n32'), digest])));
      assert.equal(personalDigest, hashMessage(bytesOf(digest)));
      // Both take the nonce from RFC 6979.
      assert.equal(signature, await wallet.signMessage(bytesOf(digest)));
      assert.equal(recoverAddress(personalDigest, signature), answers.node);
      assert.ok(isHex(signature));
      for (const backend of ['secp256k1', 'ethers'] as const) {
        assert.equal(createSigner(answers.privateKey, backend).sign(personalStatement(bytesOf(digest))), signature);
        assert.equal(recoverSigner(bytesOf(digest), signature, backend), answers.node);
      }
    });
  }

  for (const { note, reason, response } of answers.refused.filter(({ reason }) => reason === 'signer')) {
    it(`refused, ${reason}: ${note}`, () => {
      const { node, endpointId, timestamp, data, signature } = response;
      const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
      assert.notEqual(verifyMessage(bytesOf(digest), String(signature)).toLowerCase(), String(node).toLowerCase());
    });
  }

  for (const { note, text, endpointId } of ids) {
    it(`an endpoint ID: ${note}`, () => {
      assert.equal(text, canonicalize(JSON.parse(text)));
      assert.equal(endpointId, keccak256(toUtf8Bytes(text)));
    });
  }
});

describe('test vectors: what the verification module says', () => {
  for (const { note, response, signedData, digest } of answers.accepted) {
    it(`accepted: ${note}`, () => {
      const result = verifyResponse(response, { node: answers.node });
      assert.ok(result.ok, JSON.stringify(result));
      assert.deepEqual([result.signer, result.signedData, result.digest], [answers.node, signedData, digest]);
    });
  }

  for (const { note, reason, response } of answers.refused) {
    it(`refused, ${reason}: ${note}`, () => {
      const result = verifyResponse(response, { node: null });
      assert.equal(result.ok ? 'accepted' : result.reason, reason);
    });
  }
});

function bytesOf(hex: string): Uint8Array {
  return Buffer.from(hex.slice(2), 'hex');
}
