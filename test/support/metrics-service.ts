import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Wallet } from 'ethers';
import { type Scrape, scrapeAfter, scrapeUntil } from './metrics.ts';
import { pluginFile, pluginFiles } from './plugin-files.ts';
import { encoding, oneApi, type RunningService, startTestService, TEST_ADDRESS } from './service.ts';
import { SECOND, signerPlugin } from './signer-plugin.ts';
import { faults, startUpstream, type Upstream } from './upstream.ts';
import { NATIVE, prove, RECIPIENT } from './x402.ts';

const CONTRACT = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const KEY = 'k'.repeat(32);
/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:9/';

/** A service that uses every feature. */
function startEverything({ url }: Upstream): Promise<RunningService> {
  const { files, plugins } = pluginFiles(
    { watcher: pluginFile('watcher', 'onAfterApiCall: () => undefined'), kept: signerPlugin('metrics') },
    { watcher: { isolate: true } },
  );
  const terms = { type: 'x402', network: 1, rpc: NOWHERE, token: NATIVE, amount: '1', recipient: RECIPIENT };
  const accept = { network: 'eip155:1', asset: CONTRACT, amount: '1', payTo: RECIPIENT };
  const accepts = [{ ...accept, extra: { name: 'x', version: '1' } }];
  return startTestService(
    oneApi(
      url,
      {
        cached: { cache: { maxAge: 600_000 } },
        proven: { responseMatches: [{ type: 'regex', value: 'price' }] },
        paid: { auth: terms },
        bought: { auth: { type: 'x402-exact', facilitator: 'http://127.0.0.1:9', accepts } },
        keyed: { auth: { type: 'apiKey', keys: [{ name: 'ada', key: KEY }] } },
        later: { mode: 'async' },
        twice: { signatures: true },
        encrypted: { encoding, encrypt: { type: 'euint8', contract: CONTRACT } },
      },
      {
        api: {
          ...{ retry: { attempts: 2 }, mirrors: [`${url}/mirror`], breaker: true, quota: { perDay: 1000 } },
          oauth2: { tokenUrl: `${url}/token`, clientId: 'me', clientSecret: 's' },
        },
        settings: {
          metrics: { port: 0 },
          audit: { path: 'audit.jsonl' },
          state: { type: 'file', path: 'payments' },
          plugins,
          signer: { type: 'environment', next: { type: 'kept', key: SECOND.privateKey } },
          proof: { type: 'reclaim', gatewayUrl: NOWHERE },
          fhe: { network: 'sepolia', rpcUrl: NOWHERE, relayerUrl: NOWHERE, verifier: RECIPIENT },
        },
      },
    ),
    { files },
  );
}

/** Asks each endpoint once, so that each feature has something to count. */
async function askEverything(service: RunningService): Promise<void> {
  const ask = async (name: string, status: number, headers: Record<string, string> = {}) => {
    const response = await service.post(`api/${name}`, undefined, headers);
    assert.equal(response.status, status, await response.text());
  };
  const endpointId = service.ids['api/paid'];
  const proof = await prove(Wallet.createRandom(), { node: TEST_ADDRESS, endpointId, txHash: `0x${'1'.repeat(64)}` });
  await ask('cached', 200);
  await ask('proven', 200);
  await ask('paid', 401, { 'X-Payment-Proof': JSON.stringify(proof) });
  await ask('bought', 402, { 'PAYMENT-SIGNATURE': 'x' });
  await ask('keyed', 200, { 'X-Api-Key': KEY });
  await ask('later', 202);
  await ask('twice', 200);
  // 1000 is no euint8: the encryption fails before it needs a worker.
  await ask('encrypted', 502);
  await scrapeAfter(service, 8);
}

/** What a service tells once garbage was collected. */
function scrapeCollected(service: RunningService): Promise<Scrape> {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  // The collections are told of later.
  return scrapeUntil(service, (found) => {
    collectGarbage();
    return Object.keys(found.table('nodejs_gc_duration_seconds_count')).length > 0;
  });
}

/** The metrics of a service that uses every feature, after at least one event of each. */
export async function scrapeEverything(): Promise<Scrape> {
  const token = faults.json({ access_token: 't', token_type: 'bearer' });
  const upstream = await startUpstream({ '*': faults.json({ price: 1000 }), '/token': token });
  const service = await startEverything(upstream);
  try {
    await askEverything(service);
    return await scrapeCollected(service);
  } finally {
    await service.stop();
    await upstream.close();
  }
}
