/** A plugin may sign, and what it signs is checked before it goes out. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { verifyResponse } from '../../verify/index.ts';
import { suite } from '../support/lifetime.ts';
import { requestHash } from '../support/receipts.ts';
import { oneApi, serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { SECOND } from '../support/signer-plugin.ts';
import { upstreamFor } from '../support/upstream.ts';

/** A plugin that provides `sign` in place of the built-in one. @param result what it returns of `by`, a wallet, and `digest`. */
function signing(result: string): string {
  return `import { Wallet, getBytes, keccak256, solidityPackedKeccak256 } from ${JSON.stringify(import.meta.resolve('ethers'))};
    const by = new Wallet(${JSON.stringify(SECOND.privateKey)});
    const sign = async ({ endpointId, timestamp, data, isHash }) => {
      const digest = getBytes(solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]));
      return ${result};
    };
    export default { name: 'own', signerAddress: () => by.address, setup: () => ({ hooks: { sign } }) };`;
}

describe('a plugin that provides sign', { concurrency: 4 }, async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('/price', { price: 7 });

  async function ask(t: TestContext, result: string, endpoint: object = {}) {
    const plugins = [{ source: 'builtin:sign-eip191', enabled: false }, { source: './own.mjs' }];
    const config = oneApi(upstream.url, { eth: { path: '/price', ...endpoint } }, { settings: { plugins } });
    const files = { 'own.mjs': signing(result) };
    const service = await serviceFor(t, config, { files, env: { SERVICE_PRIVATE_KEY: '' } });
    const response = await service.post('api/eth');
    const line = service.logs.find(({ fields }) => fields.stage === 'sign');
    return { status: response.status, body: JSON.parse(await response.text()), reason: line?.fields.detail };
  }

  it('has its answers shown as its own', async (t) => {
    const { status, body } = await ask(t, '{ node: by.address, signature: await by.signMessage(digest), extra: {} }');
    assert.equal(status, 200);
    assert.equal(body.node, SECOND.address);
  });

  it('may put other members beside its signature, and none that have a meaning', async (t) => {
    const signature = 'node: by.address, signature: await by.signMessage(digest)';
    const { body } = await ask(t, `{ ${signature}, extra: { keyVersion: 3 } }`);
    assert.equal(body.keyVersion, 3);
    for (const field of ['timestamp', 'requestId', 'status', 'done']) {
      const { status, reason } = await ask(t, `{ ${signature}, extra: { ${field}: 3 } }`);
      assert.equal(status, 500);
      const shape = 'plugin "own": Error: returned something of the wrong shape';
      assert.ok(String(reason).startsWith(`${shape}: the field ${field} has another meaning\n`), String(reason));
    }
  });

  it('cannot show another data beside the one that it signed', async (t) => {
    const shown = "{ node: by.address, signature: await by.signMessage(digest), extra: { data: '0x08' } }";
    const { status, reason } = await ask(t, shown, { encoding: { type: 'uint256', path: '$.price' } });
    assert.equal(status, 500);
    assert.match(String(reason), /^plugin "own": Error: returned something of the wrong shape: the field data has/);
  });

  const TYPED = `{ name: 'Signed Data Receipt', version: '1' }, { Receipt: [
      ...['endpointId', 'requestHash', 'dataHash'].map((name) => ({ name, type: 'bytes32' })),
      { name: 'timestamp', type: 'uint256' }] }`;
  /** @param changed what the receipt that is signed says in place of what it should. */
  const answered = (result: string, changed = '') =>
    `(async () => { const dataHash = isHash ? data : keccak256(data);
      const stated = { endpointId, requestHash: ${JSON.stringify(requestHash({}))}, dataHash, timestamp, ${changed} };
      const [signature, receipt] = [await by.signMessage(digest), await by.signTypedData(${TYPED}, stated)];
      return { node: by.address, signature, ${result} }; })()`;
  const OTHER = `'0x' + '12'.repeat(32)`;

  it('may make receipts and signatures of its own, which are those of the answer', async (t) => {
    const entry = '{ node: by.address, signature, receiptSignature: receipt }';
    const result = `statements: [receipt], extra: { signatures: [${entry}] }`;
    const { status, body } = await ask(t, answered(result), { receipt: true });
    assert.equal(status, 200);
    const verified = verifyResponse(body, { node: SECOND.address, parameters: {} });
    assert.ok(verified.ok);
    const { signature, receipt } = body;
    const own = { node: SECOND.address, signature, receiptSignature: receipt.signature };
    assert.deepEqual(body.signatures, [own]);
  });

  const listed = (entry: string) => `statements: [receipt], extra: { signatures: [${entry}] }`;
  for (const [what, result, changed] of [
    ['a receipt by nobody', 'statements: [signature]', ''],
    ['a receipt of another request', 'statements: [receipt]', `requestHash: ${OTHER}`],
    ['a receipt of other data', 'statements: [receipt]', `dataHash: ${OTHER}`],
    ['a signature of another node', listed(`{ node: '${TEST_ADDRESS}', signature }`), ''],
    ['a list that holds no signature', listed("{ node: by.address, signature: '0x12' }"), ''],
    ['the receipt of nobody in the list', listed('{ node: by.address, signature, receiptSignature: signature }'), ''],
  ] as const) {
    it(`is not believed: ${what}`, async (t) => {
      const { status, body } = await ask(t, answered(result, changed), { receipt: true });
      assert.deepEqual([status, body], [502, { error: 'Signing failed' }]);
    });
  }

  for (const [what, result] of [
    ['no receipt', 'statements: undefined'],
    ['a receipt as a member of its own', 'extra: { receipt }'],
    ['two signatures of one receipt', 'statements: [receipt, receipt]'],
    ['signatures that are no list', 'statements: [receipt], extra: { signatures: {} }'],
    ['a list of texts', "statements: [receipt], extra: { signatures: ['0x12'] }"],
  ] as const) {
    it(`fails with ${what}`, async (t) => {
      assert.equal((await ask(t, answered(result), { receipt: true })).status, 500);
    });
  }

  it('fails with a receipt that nobody asked for', async (t) => {
    assert.equal((await ask(t, answered('statements: [receipt]'))).status, 500);
  });

  const stranger = `{ node: '${TEST_ADDRESS}', signature: await by.signMessage(digest) }`;
  const highS = "{ node: by.address, signature: '0x' + '11'.repeat(32) + '7f' + 'ff'.repeat(31) + '1b' }";
  for (const [what, result, reason] of [
    ['somebody else’s', stranger, `the signature is by ${SECOND.address}, not by ${TEST_ADDRESS}`],
    ['no', "{ node: by.address, signature: '0x1234' }", 'signature must be 65 bytes of 0x hex'],
    ['a signature that contracts refuse,', highS, 'signature s is in the upper half of the curve order (EIP-2)'],
  ] as const) {
    it(`is not believed: ${what} signature`, async (t) => {
      const { status, body, reason: logged } = await ask(t, result);
      assert.deepEqual([status, body], [502, { error: 'Signing failed' }]);
      assert.equal(logged, reason);
    });
  }
});

it('a key that a plugin keeps in the process is not taken at its word either', async (t) => {
  const upstream = await upstreamFor(t);
  upstream.json('/price', { price: 7 });
  const near = `import { Wallet, hexlify } from ${JSON.stringify(import.meta.resolve('ethers'))};
    const [own, other] = [new Wallet(${JSON.stringify(SECOND.privateKey)}), new Wallet(${JSON.stringify(TEST_KEY)})];
    let signed = 0;
    const sign = ({ hash }) => (signed++ === 0 ? own : other).signingKey.sign(hexlify(hash)).serialized;
    const schema = { type: 'object', properties: {} };
    const signers = { near: { schema, local: true, open: () => ({ address: own.address, sign }) } };
    export default { name: 'near-signer', signers, setup: () => ({}) };`;
  const settings = { plugins: [{ source: './near.mjs' }], signer: { type: 'near' } };
  const config = oneApi(upstream.url, { eth: { path: '/price' } }, { settings });
  const service = await serviceFor(t, config, { files: { 'near.mjs': near }, env: { SERVICE_PRIVATE_KEY: '' } });
  const response = await service.post('api/eth');
  assert.deepEqual([response.status, await response.json()], [502, { error: 'Signing failed' }]);
});
