/** Signers outside the process sign answers with a real node and a real token. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { getBytes, solidityPackedKeccak256, verifyMessage } from 'ethers';
import { startChain } from '../support/chain.ts';
import { startTestService, TEST_ADDRESS } from '../support/service.ts';
import { createSoftHsm } from '../support/softhsm.ts';
import { startUpstream } from '../support/upstream.ts';

describe('settings.signer with a real node and a real token', async () => {
  const chain = await startChain();
  const hsm = createSoftHsm();
  const addresses = hsm.initToken('vault', [{ label: 'answers' }]);
  const upstream = await startUpstream();
  upstream.json('/price', { price: 7 });

  after(async () => {
    await chain.stop();
    await upstream.close();
    hsm.remove();
  });

  const start = (signer: object, env: Record<string, string> = {}) => {
    const encoding = { type: 'uint256', path: '$.price' };
    const endpoints = [{ name: 'eth', path: '/price', encoding, signatures: true }];
    const api = { name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints };
    return startTestService({ settings: { signer }, apis: [api] }, { env: { SERVICE_PRIVATE_KEY: '', ...env } });
  };
  const token = () => ({ type: 'pkcs11', module: hsm.module, token: 'vault', label: 'answers', pin: '${HSM_PIN}' });

  it('has each answer signed by the token, and by the account of the node that comes next', async () => {
    const next = { type: 'json-rpc', url: chain.url, address: TEST_ADDRESS };
    const service = await start({ ...token(), next }, { HSM_PIN: hsm.pin });
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map(async () => JSON.parse(await (await service.post('prices/eth')).text())),
    );
    for (const { node, endpointId, timestamp, data, signature, signatures } of answers) {
      const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
      const by = (each: string) => verifyMessage(getBytes(digest), each);
      assert.deepEqual([node, by(signature)], [addresses.answers, addresses.answers]);
      const all = signatures.map((each: { signature: string }) => by(each.signature));
      assert.deepEqual(all, [addresses.answers, TEST_ADDRESS]);
    }
    await service.stop();
  });

  it('does not start with a wrong PIN, and shows none', async () => {
    const message = 'settings.signer: pin: the module says CKR_PIN_INCORRECT';
    await assert.rejects(start(token(), { HSM_PIN: 'wrong-pin' }), { message });
    const service = await start(token(), { HSM_PIN: hsm.pin });
    assert.equal(service.signer.address, addresses.answers);
    await service.stop();
  });

  it('does not start with an account that the node does not have', async () => {
    const signer = { type: 'json-rpc', url: chain.url, address: addresses.answers };
    await assert.rejects(
      start(signer),
      /^Error: .*settings\.signer \(json-rpc\) does not sign: personal_sign: error -32\d+$/,
    );
  });
});
