/** Signers outside the process sign answers with a real node. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { getBytes, solidityPackedKeccak256, verifyMessage } from 'ethers';
import { chainFor } from '../support/chain.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

describe('settings.signer with a real node', async () => {
  const chain = await chainFor(suite);
  const [first, second] = [TEST_ADDRESS, '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'];
  const upstream = await upstreamFor(suite, { '/price': faults.json({ price: 7 }) });

  const start = (t: TestContext, signer: object) => {
    const endpoint = { path: '/price', encoding: { type: 'uint256', path: '$.price' }, signatures: true };
    const config = oneApi(upstream.url, { eth: endpoint }, { settings: { signer } });
    return serviceFor(t, config, { env: { SERVICE_PRIVATE_KEY: '' } });
  };
  const account = (address: string) => ({ type: 'json-rpc', url: chain.url, address });

  it('has each answer signed by an account of the node, and by the one that comes next', async (t) => {
    const service = await start(t, { ...account(first), next: account(second) });
    const responses = await Promise.all(Array.from({ length: 5 }, () => service.post('api/eth')));
    const answers = await Promise.all(responses.map(async (response) => JSON.parse(await response.text())));
    for (const { node, endpointId, timestamp, data, signature, signatures } of answers) {
      const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
      const by = (each: string) => verifyMessage(getBytes(digest), each);
      assert.deepEqual([node, by(signature)], [first, first]);
      const all = signatures.map((each: { signature: string }) => by(each.signature));
      assert.deepEqual(all, [first, second]);
    }
  });

  it('does not start with an account that the node does not have', async (t) => {
    const signer = account('0x000000000000000000000000000000000000dEaD');
    const why = /^Error: .*settings\.signer \(json-rpc\) does not sign: personal_sign: error -32\d+$/;
    await assert.rejects(start(t, signer), why);
  });
});
