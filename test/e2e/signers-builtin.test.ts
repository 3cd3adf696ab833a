/** Signers outside the process sign answers with a real node. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { getBytes, solidityPackedKeccak256, verifyMessage } from 'ethers';
import { startChain } from '../support/chain.ts';
import { startTestService, TEST_ADDRESS } from '../support/service.ts';
import { startUpstream } from '../support/upstream.ts';

describe('settings.signer with a real node', async () => {
  const chain = await startChain();
  const [first, second] = [TEST_ADDRESS, '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'];
  const upstream = await startUpstream();
  upstream.json('/price', { price: 7 });

  after(async () => {
    await chain.stop();
    await upstream.close();
  });

  const start = (signer: object) => {
    const encoding = { type: 'uint256', path: '$.price' };
    const endpoints = [{ name: 'eth', path: '/price', encoding, signatures: true }];
    const api = { name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints };
    return startTestService({ settings: { signer }, apis: [api] }, { env: { SERVICE_PRIVATE_KEY: '' } });
  };
  const account = (address: string) => ({ type: 'json-rpc', url: chain.url, address });

  it('has each answer signed by an account of the node, and by the one that comes next', async () => {
    const service = await start({ ...account(first), next: account(second) });
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map(async () => JSON.parse(await (await service.post('prices/eth')).text())),
    );
    for (const { node, endpointId, timestamp, data, signature, signatures } of answers) {
      const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
      const by = (each: string) => verifyMessage(getBytes(digest), each);
      assert.deepEqual([node, by(signature)], [first, first]);
      const all = signatures.map((each: { signature: string }) => by(each.signature));
      assert.deepEqual(all, [first, second]);
    }
    await service.stop();
  });

  it('does not start with an account that the node does not have', async () => {
    const signer = account('0x000000000000000000000000000000000000dEaD');
    await assert.rejects(
      start(signer),
      /^Error: .*settings\.signer \(json-rpc\) does not sign: personal_sign: error -32\d+$/,
    );
  });
});
