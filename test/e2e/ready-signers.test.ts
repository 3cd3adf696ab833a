/** /ready tells when a signer outside the process fails. */

import assert from 'node:assert/strict';
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { describe, it, type TestContext } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1';
import { getBytes, keccak256, Wallet } from 'ethers';
import { metricsUrl, scrape } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const wallet = new Wallet(`0x${'42'.repeat(32)}`);
/** x and y, as web3signer names keys. */
const identifier = `0x${wallet.signingKey.publicKey.slice(4)}`;

/** A signer that can be taken away, and what the config says of it. */
interface Vault {
  readonly config: object;
  breakDown(): void;
  repair(): void;
}

type MakeVault<V extends Vault = Vault> = (t: TestContext) => Promise<V>;

/** A signer behind HTTP, away while its server answers with 503. */
async function httpVault(t: TestContext, handlers: Record<string, Handler>, config: (url: string) => object) {
  const server = await upstreamFor(t, handlers);
  const setAll = (handler?: Handler) => {
    for (const [path, own] of Object.entries(handlers)) server.on(path, handler ?? own);
  };
  const failOnce: Handler = (...args) => {
    setAll();
    return faults.empty(503)(...args);
  };
  return {
    config: config(server.url),
    breakDown: () => setAll(faults.empty(503)),
    repair: () => setAll(),
    failOnce: () => setAll(failOnce),
    untilAsked: (times: number) => server.until(() => server.requests.length === times && server.open === 0),
  };
}

const jsonRpc = (t: TestContext, by = wallet) => {
  const rpc: Handler = async (req, res, recorded) => {
    const { id, params } = JSON.parse(recorded.body);
    const result = await by.signMessage(getBytes(String(params[0])));
    return faults.json({ jsonrpc: '2.0', id, result })(req, res, recorded);
  };
  return httpVault(t, { '/': rpc }, (url) => ({ type: 'json-rpc', url, address: by.address }));
};

const web3signer: MakeVault = (t) => {
  const sign: Handler = (req, res, recorded) => {
    const { serialized } = wallet.signingKey.sign(keccak256(JSON.parse(recorded.body).data));
    return faults.text(serialized, { type: 'text/plain' })(req, res, recorded);
  };
  const handlers = { '/api/v1/eth1/publicKeys': faults.json([identifier]), [`/api/v1/eth1/sign/${identifier}`]: sign };
  return httpVault(t, handlers, (url) => ({ type: 'web3signer', url, address: wallet.address }));
};

const awsKms: MakeVault = (t) => {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKTEST', AWS_SECRET_ACCESS_KEY: 'geheim' });
  const halves = [identifier.slice(2, 66), identifier.slice(66)];
  const [x, y] = halves.map((hex) => Buffer.from(hex, 'hex').toString('base64url'));
  const jwk = { kty: 'EC', crv: 'secp256k1', x, y } as JsonWebKey;
  const spki = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'der' });
  const described = { PublicKey: spki.toString('base64'), KeySpec: 'ECC_SECG_P256K1', KeyUsage: 'SIGN_VERIFY' };
  const kms: Handler = (req, res, recorded) => {
    const { Message = '' } = JSON.parse(recorded.body);
    const signed = () => secp256k1.sign(Buffer.from(Message, 'base64'), wallet.privateKey.slice(2)).toDERRawBytes();
    const answer = String(recorded.headers['x-amz-target']).endsWith('.Sign')
      ? { Signature: Buffer.from(signed()).toString('base64') }
      : { ...described, SigningAlgorithms: ['ECDSA_SHA_256'] };
    return faults.json(answer)(req, res, recorded);
  };
  const config = { type: 'aws-kms', keyId: 'alias/answers', region: 'eu-central-1' };
  return httpVault(t, { '/': kms }, (endpoint) => ({ ...config, endpoint }));
};

async function ready(url: string): Promise<string> {
  const response = await fetch(`${url}/ready`);
  return `${response.status} ${await response.text()}`;
}

const lines = ({ logs }: RunningService) =>
  logs.flatMap(({ level, message, fields }) => (/signer is/.test(message) ? [[level, message, fields.signer]] : []));
/** Waits until the log has told of so many changes. */
const untilTold = (service: RunningService, changes: number) =>
  eventually(() => lines(service).length === changes, `${changes} changes of signers`);
const AWAY = 'a signer is away: answers that need its signature are refused';
const READY = '200 {"status":"ready"}';

describe('GET /ready while a signer outside the process fails', () => {
  async function start(t: TestContext, signer: object, endpoints: Parameters<typeof oneApi>[1] = { e: {} }) {
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }) });
    const config = oneApi(upstream.url, endpoints, { settings: { signer, metrics: { port: 0 } } });
    return { service: await serviceFor(t, config), config };
  }

  for (const [type, make] of Object.entries({ 'json-rpc': jsonRpc, web3signer, 'aws-kms': awsKms })) {
    it(`names it, and not any more once it signs again: ${type}`, async (t) => {
      const vault = await make(t);
      const { service } = await start(t, vault.config);
      const asked = async () => (await service.post('api/e')).status;
      const available = async () => (await scrape(service)).value('signers_available');
      assert.deepEqual([await asked(), await ready(service.url), await available()], [200, READY, 1]);
      vault.breakDown();
      assert.equal(await asked(), 502);
      await untilTold(service, 1);
      assert.equal(await ready(service.url), `503 {"status":"away","away":["signer ${type}"]}`);
      assert.equal(await available(), 0);
      vault.repair();
      await untilTold(service, 2);
      assert.equal(await ready(service.url), READY);
      assert.deepEqual([await asked(), await available()], [200, 1]);
      const signer = `settings.signer (${type})`;
      assert.deepEqual(lines(service), [
        ['error', AWAY, signer],
        ['info', 'a signer is back', signer],
      ]);
    });
  }

  it('is 200 while only the next one fails and an endpoint does without it; both are named, also on the port of metrics', async (t) => {
    const [vault, next] = [await jsonRpc(t), await jsonRpc(t, new Wallet(`0x${'43'.repeat(32)}`))];
    const signer = { ...vault.config, next: next.config };
    const { service, config } = await start(t, signer, { both: { signatures: true }, one: {} });
    const statuses = async () => [(await service.post('api/both')).status, (await service.post('api/one')).status];
    // The port of metrics outlives a reload, and tells of the signers that are in use now.
    await reload(service, config);
    const metrics = new URL(metricsUrl(service)).origin;
    next.breakDown();
    assert.deepEqual(await statuses(), [502, 200]);
    await untilTold(service, 1);
    for (const url of [service.url, metrics])
      assert.equal(await ready(url), '200 {"status":"ready","away":["next signer json-rpc"]}');
    vault.breakDown();
    assert.deepEqual(await statuses(), [502, 502]);
    await untilTold(service, 2);
    for (const url of [service.url, metrics])
      assert.equal(await ready(url), '503 {"status":"away","away":["signer json-rpc","next signer json-rpc"]}');
    vault.repair();
    next.repair();
    await untilTold(service, 4);
    for (const url of [service.url, metrics]) assert.equal(await ready(url), READY);
    assert.deepEqual(await statuses(), [200, 200]);
  });

  it('is 200 after a signature that failed once', async (t) => {
    const vault = await jsonRpc(t);
    const { service } = await start(t, vault.config);
    vault.failOnce();
    assert.equal((await service.post('api/e')).status, 502);
    // The probe that follows comes before any other request.
    await vault.untilAsked(3);
    assert.equal(await ready(service.url), READY);
    assert.deepEqual(lines(service), []);
  });
});
