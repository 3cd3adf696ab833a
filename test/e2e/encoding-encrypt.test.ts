import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertError, oneApi } from '../support/answers.ts';
import { type RunningService, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const encoding = { type: 'uint256', path: '$.v' };
const settings = {
  fhe: { network: 'sepolia', rpcUrl: 'https://rpc.example', verifier: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
  proof: { type: 'reclaim', gatewayUrl: 'https://gateway.example' },
};

describe('encryption and proofs, of which only the config and the stages exist yet', () => {
  let upstream: Upstream;
  let service: RunningService;

  before(async () => {
    upstream = await startUpstream();
    for (const path of ['/encrypted', '/proven', '/plain']) upstream.json(path, { v: 7 });
    service = await startTestService({
      settings,
      ...oneApi(upstream.url, {
        encrypted: { encoding, encrypt: { type: 'euint8', contract: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' } },
        proven: { encoding, responseMatches: [{ type: 'regex', value: '"v":(?<v>\\d+)' }] },
        plain: { encoding },
      }),
    });
  });
  after(async () => {
    await service.stop();
    await upstream.close();
  });

  it('an endpoint that wants encryption signs nothing without it: 502 `FHE encryption failed`', async () => {
    await assertError(await service.post('api/encrypted'), 502, 'FHE encryption failed');
  });

  it('a proof that cannot be had is non-fatal: the answer comes without `proof` (pipeline row 13)', async () => {
    for (const endpoint of ['api/proven', 'api/plain']) {
      const body = await verifyEncoded(await service.post(endpoint), TEST_ADDRESS);
      assert.ok(!('proof' in body));
    }
    const warned = service.logs.filter(({ message }) => message.includes('no TLS proof'));
    assert.deepEqual(
      warned.map(({ fields }) => fields.endpointId),
      [service.ids['api/proven']],
    );
  });
});
