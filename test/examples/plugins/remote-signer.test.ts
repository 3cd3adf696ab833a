import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { getBytes, solidityPackedKeccak256, verifyMessage, Wallet } from 'ethers';
import { Described } from '../../openapi/document.ts';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { pluginFiles } from '../../support/plugin-files.ts';
import { type RunningService, startTestService, TEST_ADDRESS } from '../../support/service.ts';
import { faults, type Handler, startUpstream, type Upstream } from '../../support/upstream.ts';

const wallet = new Wallet(`0x${'42'.repeat(32)}`);
const stranger = new Wallet(`0x${'43'.repeat(32)}`);
const encoding = { type: 'uint256', path: '$' };
const withoutKey = { SERVICE_PRIVATE_KEY: '' };

/** Signs whatever digest it is sent. */
const signing =
  (by: Wallet): Handler =>
  async (req, res, recorded) => {
    const signature = await by.signMessage(getBytes(JSON.parse(recorded.body).digest));
    return faults.json({ signature })(req, res, recorded);
  };

/** Whose signature an answer carries. */
function signerOf(answer: Record<string, string>): string {
  const types = ['bytes32', 'uint256', 'bytes'];
  const digest = solidityPackedKeccak256(types, [answer.endpointId, answer.timestamp, answer.data]);
  return verifyMessage(getBytes(digest), answer.signature ?? '');
}

describe('remote-signer', () => {
  let signer: Upstream;
  let service: RunningService;
  let upstream: Upstream;

  const start = (config: object) => {
    const plugins = [{ source: 'builtin:sign-eip191', enabled: false }, example('remote-signer', config)];
    const endpoints = { e: { encoding }, kept: { path: '/e?kept', encoding, cache: { maxAge: 60_000 } } };
    return startTestService(oneApi(upstream.url, endpoints, { settings: { plugins, openapi: true } }), {
      env: withoutKey,
    });
  };
  const reasons = (from: RunningService) =>
    from.logs.filter(({ message }) => message === 'Signing failed').map(({ fields }) => fields.reason);

  before(async () => {
    upstream = await startUpstream({ '/e': faults.json(7) });
    signer = await startUpstream({ '/sign': signing(wallet) });
    service = await start({ url: `${signer.url}/sign`, address: wallet.address.toLowerCase(), timeout: 1500 });
  });
  after(async () => {
    await service.stop();
    await signer.close();
    await upstream.close();
  });

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

  for (const [what, handler, reason] of [
    ['signs with another key', signing(stranger), 'Error: the signature is by somebody else'],
    ['sends something else', faults.json({ signature: '0x01' }), 'Error: signature must be 65 bytes of 0x hex'],
    ['sends no signature', faults.json(null), 'Error: signature must be 65 bytes of 0x hex'],
    ['is out of order', faults.serverError(), 'Error: the signer answered 500'],
    ['never answers', faults.hang(), /^RequestFailure: POST http:\/\/127\.0\.0\.1:\d+ failed: .*1500 ms/],
  ] as const) {
    it(`a signer that ${what}: 502, and nothing is kept`, async () => {
      signer.on('/sign', handler);
      await assertRefused(await service.post('api/kept'), 502, 'Signing failed');
      const said = String(reasons(service).at(-1));
      if (typeof reason === 'string') assert.equal(said, reason);
      else assert.match(said, reason);
      signer.on('/sign', signing(wallet));
    });
  }

  it('a signer that is down: 502, and the next answer is signed when it is back', async () => {
    const down = await startUpstream();
    await down.close();
    const other = await start({ url: `${down.url}/sign`, address: wallet.address });
    await assertRefused(await other.post('api/e'), 502, 'Signing failed');
    assert.match(String(reasons(other)), /^RequestFailure: POST .* failed: /);
    await other.stop();
    assert.equal((await service.post('api/kept')).status, 200);
  });

  it('has a config that can be used, or the service does not start', async () => {
    const address = wallet.address.replace(/[A-F]/, (digit) => digit.toLowerCase());
    await assert.rejects(start({ url: signer.url, address }), /^Error: wrong address checksum/);
    await assert.rejects(start({ url: 'signer', address: wallet.address }), /config\.url: /);
  });
});

describe('a plugin that signs for one endpoint', () => {
  it('comes before the built-in signer, which signs for the others', async () => {
    const upstream = await startUpstream({ '*': faults.json(7) });
    const picky = `
      import { dataDigest, toBytes } from 'signed-data-proxy/plugins-sdk';
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
    assert.ok(service.logs.some(({ message }) => message === 'picky: sign'));
    await service.stop();
    await upstream.close();
  });
});
