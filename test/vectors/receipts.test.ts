/** The vectors of receipts are what all implementations make and refuse. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { ContractFactory, hashMessage, keccak256, toUtf8Bytes, verifyTypedData } from 'ethers';
import { dataDigest } from '../../lib/eth/eip191.ts';
import { isHex, toBytes, toHex } from '../../lib/eth/hex.ts';
import { personalStatement, receiptStatement } from '../../lib/eth/statements.ts';
import { jcs } from '../../lib/json/canonical-json.ts';
import { createSigner } from '../../plugins-sdk/signing/local-key.ts';
import { requestHashOf, verifyResponse } from '../../verify/index.ts';
import { chainFor } from '../support/chain.ts';
import { suite } from '../support/lifetime.ts';
import { compile } from '../support/solidity.ts';
import { type ReceiptVectors, receiptVectors } from './receipts.ts';

const stored: ReceiptVectors = JSON.parse(await readFile(new URL('receipts.json', import.meta.url), 'utf8'));
const { node, accepted, refused, domain, types } = stored;

function hex(text: string | undefined) {
  assert.ok(isHex(text));
  return text;
}

it('receipts.json is what ethers and canonicalize make today', async () => {
  assert.deepEqual(stored, await receiptVectors());
});

describe('the vectors of receipts: what the SDK makes', () => {
  const { address, sign } = createSigner(stored.privateKey);

  for (const { note, parameters, canonical, requestHash, response, typedDataHash } of accepted) {
    it(note, () => {
      assert.equal(address, node);
      assert.equal(jcs({ parameters: JSON.parse(parameters) }), canonical);
      assert.equal(keccak256(toUtf8Bytes(canonical)), requestHash);
      const { timestamp, receipt } = response;
      const endpointId = hex(response.endpointId);
      const dataHash = hex(receipt.dataHash);
      const { hash } = receiptStatement({ endpointId, requestHash: hex(requestHash), dataHash, timestamp });
      assert.equal(toHex(hash), typedDataHash);
      const message = { endpointId, requestHash, dataHash, timestamp };
      assert.equal(verifyTypedData(domain, types, message, receipt.signature), node);
      const signed = response.data === undefined ? dataHash : hex(response.data);
      assert.equal(sign(personalStatement(dataDigest(endpointId, timestamp, toBytes(signed)))), response.signature);
      assert.notEqual(hashMessage(toBytes(dataHash)), typedDataHash);
    });
  }
});

describe('the vectors of receipts: what the verification module says', () => {
  for (const { note, parameters, requestHash, response } of accepted) {
    it(`accepted: ${note}`, () => {
      const asked = JSON.parse(parameters);
      assert.equal(requestHashOf(asked), requestHash);
      const result = verifyResponse(response, { node, endpointId: response.endpointId, parameters: asked });
      assert.ok(result.ok, JSON.stringify(result));
      assert.deepEqual([result.requestHash, result.receiptSignature], [requestHash, response.receipt.signature]);
    });
  }

  for (const { note, reason, parameters, response } of refused) {
    it(`refused, ${reason}: ${note}`, () => {
      const result = verifyResponse(response, { node, parameters: JSON.parse(parameters) });
      assert.equal(result.ok ? 'accepted' : result.reason, reason);
    });
  }
});

describe('the vectors of receipts: what the example contract says', async () => {
  const deploy = async (name: string, ...args: unknown[]) => {
    const contract = contracts[name];
    assert.ok(contract);
    return (await new ContractFactory(contract.abi, contract.bytecode, deliverer).deploy(...args)).waitForDeployment();
  };

  const contracts = {
    ...(await compile('verify/contracts/SignedDataVerifier.sol')),
    ...(await compile('examples/contracts/PinnedPriceConsumer.sol')),
  };
  const chain = await chainFor(suite, 31337, ['--timestamp', '1767225600']);
  const deliverer = await chain.provider.getSigner(1);
  const verifier = await (await deploy('SignedDataVerifier')).getAddress();

  /** It keeps prices of five minutes, each of 32 bytes. */
  const priced = accepted.filter(({ response: { data, timestamp } }) => data?.length === 66 && timestamp < 2 ** 32);

  for (const { note, requestHash, response } of priced) {
    it(`accepted: ${note}`, async () => {
      const { endpointId, timestamp, data, signature, receipt } = response;
      const consumer = await deploy('PinnedPriceConsumer', verifier, node, endpointId, requestHash);
      const call = consumer.getFunction('deliver').staticCall(timestamp, data, signature, receipt.signature);
      assert.deepEqual((await call).toArray(), []);
    });
  }

  for (const { note, parameters, response } of refused.filter(({ reason }) => reason !== 'malformed')) {
    it(`refused: ${note}`, async () => {
      const { endpointId, timestamp, data, signature, receipt } = response as Readonly<Record<string, never>>;
      const { signature: receiptSignature = '0x' } = Object(receipt);
      const requestHash = requestHashOf(JSON.parse(parameters));
      const consumer = await deploy('PinnedPriceConsumer', verifier, node, endpointId, requestHash);
      const call = consumer.getFunction('deliver').staticCall(timestamp, data, signature, receiptSignature);
      // The contract makes the hash of the data itself: what an answer claims of it does not count.
      if (/other data/.test(note)) await call;
      else await assert.rejects(call, { code: 'CALL_EXCEPTION' });
    });
  }
});
