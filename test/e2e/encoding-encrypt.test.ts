/** An endpoint that must encrypt and cannot answers nothing in the clear. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { errorsOf } from '../support/config.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const VERIFIER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const CONSUMER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const NOBODY = 'http://127.0.0.1:9';
const encoding = { type: 'uint256', path: '$.v' };
const relayer = { network: 'sepolia', rpcUrl: NOBODY, relayerUrl: NOBODY, verifier: VERIFIER };

describe('an endpoint with `encrypt`, whose relayer cannot be reached', async () => {
  const upstream = await upstreamFor(suite);
  for (const path of ['/encrypted', '/plain']) upstream.json(path, { v: 7 });
  const service = await serviceFor(suite, {
    settings: { fhe: relayer },
    ...oneApi(upstream.url, {
      encrypted: { encoding, encrypt: { type: 'euint8', contract: CONSUMER } },
      plain: { encoding },
    }),
  });

  it('signs nothing that is not encrypted: 502 `FHE encryption failed`', async () => {
    await assertRefused(await service.post('api/encrypted'), 502, 'FHE encryption failed');
  });

  it('leaves endpoints without `encrypt` alone', async () => {
    const { data } = await verifyEncoded(await service.post('api/plain'), TEST_ADDRESS);
    assert.equal(data, `0x${'7'.padStart(64, '0')}`);
  });
});

describe('`settings.fhe`', () => {
  const errors = (more: Readonly<Record<string, unknown>>, own?: unknown) => {
    const plugins = own === undefined ? [] : [{ source: 'builtin:fhe', config: own }];
    return errorsOf({
      settings: { fhe: { ...relayer, ...more }, plugins },
      ...oneApi(NOBODY, { plain: { encoding } }),
    });
  };

  it('names URLs, of which the node`s may hold credentials and the relayer`s may not', async () => {
    assert.deepEqual(await errors({ rpcUrl: 'https://user:pass@rpc.example/key?k=v' }), []);
    assert.deepEqual(await errors({ rpcUrl: 'https://', relayerUrl: 'https://' }), [
      'settings.fhe.rpcUrl: is no valid URL',
      'settings.fhe.relayerUrl: is no valid URL',
    ]);
    assert.deepEqual(await errors({ relayerUrl: 'https://user:pass@relayer.example/v2' }), [
      'settings.fhe.relayerUrl: must hold no user name or password: use apiKey',
    ]);
    for (const tail of ['?key=v', '#v2']) {
      assert.deepEqual(await errors({ relayerUrl: `https://relayer.example/v2${tail}` }), [
        'settings.fhe.relayerUrl: must hold no query or fragment',
      ]);
    }
  });

  it('holds an API key that a header can carry, which no error shows', async () => {
    for (const apiKey of ['', ' ', 'two\nlines', 'ключ']) {
      assert.deepEqual(await errors({ apiKey }), [
        'settings.fhe.apiKey: is empty or holds a character that no header can carry',
      ]);
    }
    assert.deepEqual(await errors({ apiKey: 'plain' }), []);
  });

  it('goes with a config of the plugin for workers, queue and lifetime', async () => {
    assert.deepEqual(await errors({}, { workers: 2, queue: 0, lifetime: 0 }), []);
    for (const own of [{ workers: 0 }, { queue: -1 }, { lifetime: 0.5 }, { worker: 1 }]) {
      assert.equal((await errors({}, own)).length, 1, JSON.stringify(own));
    }
  });
});
