/** remote-signer signs by a service outside. */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { getBytes, solidityPackedKeccak256, verifyMessage, Wallet } from 'ethers';
import plugin from '../../../examples/plugins/remote-signer.ts';
import { Described } from '../../openapi/document.ts';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { stopAll, suite } from '../../support/lifetime.ts';
import { pluginFiles } from '../../support/plugin-files.ts';
import { oneApi, type RunningService, startTestService, TEST_ADDRESS } from '../../support/service.ts';
import { assertSigns, openSigner } from '../../support/statements.ts';
import { faults, type Handler, startUpstream, upstreamFor } from '../../support/upstream.ts';

const wallet = new Wallet(`0x${'42'.repeat(32)}`);
const stranger = new Wallet(`0x${'43'.repeat(32)}`);
const encoding = { type: 'uint256', path: '$' };
const withoutKey = { SERVICE_PRIVATE_KEY: '' };
const headers = { 'X-Token': 't' };

/** Signs whatever it is sent, a digest or typed data. */
const signing =
  (by: Wallet): Handler =>
  async (req, res, recorded) => {
    const { digest, typedData } = JSON.parse(recorded.body);
    if (digest !== undefined)
      return faults.json({ signature: await by.signMessage(getBytes(digest)) })(req, res, recorded);
    const { domain, types, message } = typedData;
    const { EIP712Domain: _, ...fields } = types;
    return faults.json({ signature: await by.signTypedData(domain, fields, message) })(req, res, recorded);
  };

/** Whose signature an answer carries. */
function signerOf(answer: Record<string, string>): string {
  const types = ['bytes32', 'uint256', 'bytes'];
  const digest = solidityPackedKeccak256(types, [answer.endpointId, answer.timestamp, answer.data]);
  return verifyMessage(getBytes(digest), answer.signature ?? '');
}

describe('remote-signer', async () => {
  const start = (config: object) => {
    const settings = { plugins: [example('remote-signer')], signer: { type: 'remote', ...config }, openapi: true };
    const kept = { path: '/e?kept', encoding, cache: { maxAge: 60_000 } };
    const endpoints = { e: { encoding }, kept };
    return startTestService(oneApi(upstream.url, endpoints, { settings }), { env: withoutKey });
  };
  const reasons = (from: RunningService) =>
    from.logs.filter(({ message }) => message === 'Signing failed').map(({ fields }) => fields.detail);

  const upstream = await upstreamFor(suite, { '/e': faults.json(7) });
  const signer = await upstreamFor(suite, { '/sign': signing(wallet) });
  const service = await start({
    url: `${signer.url}/sign`,
    address: wallet.address.toLowerCase(),
    timeout: 1500,
    headers,
  });

  after(() => stopAll(service));

  it('has answers signed by a key that the service does not have', async () => {
    const response = await service.post('api/e');
    const answer = JSON.parse(await response.text());
    assert.deepEqual([response.status, answer.node], [200, wallet.address]);
    assert.equal(signerOf(answer), wallet.address);
    const { method, body } = signer.requests.at(-1) ?? assert.fail('nobody asked the signer');
    const { address, digest, ...rest } = JSON.parse(body);
    assert.deepEqual([method, address, rest], ['POST', wallet.address, {}]);
    assert.match(digest, /^0x[0-9a-f]{64}$/);
  });

  it('is described', async () => {
    const described = new Described(await (await fetch(`${service.url}/openapi.json`)).json());
    const path = `/endpoints/${service.ids['api/e']}`;
    await described.assertDescribed(path, 'post', await service.post('api/e'));
    signer.on('/sign', faults.serverError());
    await described.assertDescribed(path, 'post', await service.post('api/e'));
    signer.on('/sign', signing(wallet));
  });

  it('is the service’s address from the start', async () => {
    assert.equal(service.signer.address, wallet.address);
    assert.deepEqual(await (await fetch(`${service.url}/health`)).json(), { status: 'ok', node: wallet.address });
    assert.ok(service.logs.some(({ message }) => message === `signer ${wallet.address}`));
  });

  it('signs receipts as typed data, and sends its headers', async (t) => {
    const opened = await openSigner(t, plugin, { url: `${signer.url}/sign`, address: wallet.address, headers });
    await assertSigns(opened, new Uint8Array(32).fill(7));
    assert.equal(signer.requests.at(-1)?.headers['x-token'], 't');
  });

  const sealed = 'signer "remote": ';
  const by = `${sealed}the signature is by ${stranger.address}, not by ${wallet.address}`;
  const none = `${sealed}the signature is not 65 bytes of 0x hex`;
  for (const [what, handler, reason] of [
    ['signs with another key', signing(stranger), by],
    ['sends something else', faults.json({ signature: '0x01' }), none],
    ['sends no signature', faults.json(null), none],
    ['is out of order', faults.serverError(), `${sealed}HTTP status 500`],
    ['never answers', faults.hang(), `${sealed}no signature within 1500 ms`],
  ] as const) {
    it(`a signer that ${what}: 502, and nothing is kept`, async () => {
      signer.on('/sign', handler);
      await assertRefused(await service.post('api/kept'), 502, 'Signing failed');
      assert.equal(reasons(service).at(-1), reason);
      signer.on('/sign', signing(wallet));
    });
  }

  it('a service whose signer is down does not start', async () => {
    const down = await startUpstream();
    await down.close();
    const refused = start({ url: `${down.url}/sign`, address: wallet.address });
    await assert.rejects(refused, /settings\.signer \(remote\) does not sign: POST .* refused \(ECONNREFUSED\)$/);
    assert.equal((await service.post('api/kept')).status, 200);
  });

  it('has a config that can be used, or the service does not start', async () => {
    const address = wallet.address.replace(/[A-F]/, (digit) => digit.toLowerCase());
    const message = 'settings.signer.address: the checksum of the address is wrong (EIP-55)';
    await assert.rejects(start({ url: signer.url, address }), { message });
    await assert.rejects(start({ url: 'signer', address: wallet.address }), /settings\.signer\.url: /);
  });
});

describe('a plugin that signs for one endpoint', () => {
  it('comes before the built-in signer, which signs for the others', async () => {
    const upstream = await startUpstream({ '*': faults.json(7) });
    const picky = `
      import { toBytes } from 'signed-data-proxy/plugins-sdk';
      import { dataDigest } from 'signed-data-proxy/plugins-sdk/signing';
      const { sign } = globalThis.testWallet;
      export default {
        name: 'picky',
        setup: () => ({
          hooks: {
            sign: async ({ endpointId, timestamp, data }, { endpoint }) =>
              endpoint.name === 'own' ? sign(dataDigest(endpointId, timestamp, toBytes(data))) : undefined,
          },
        }),
      };`;
    const sign = async (digest: Uint8Array) => ({
      node: stranger.address,
      signature: await stranger.signMessage(digest),
    });
    Reflect.set(globalThis, 'testWallet', { sign });
    const { files, plugins } = pluginFiles({ picky });
    const endpoints = { own: { encoding }, other: { encoding } };
    const service = await startTestService(oneApi(upstream.url, endpoints, { settings: { plugins } }), { files });
    const signers = await Promise.all(
      ['api/own', 'api/other'].map(async (name) => {
        const answer = JSON.parse(await (await service.post(name)).text());
        return [answer.node, signerOf(answer)];
      }),
    );
    assert.deepEqual(signers, [
      [stranger.address, stranger.address],
      [TEST_ADDRESS, TEST_ADDRESS],
    ]);
    assert.equal(service.signer.address, TEST_ADDRESS);
    assert.ok(service.logs.some(({ message }) => message === 'plugin "picky" can change what gets signed (sign)'));
    await service.stop();
    await upstream.close();
  });
});
