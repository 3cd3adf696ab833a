/** An endpoint that must encrypt and cannot answers nothing in the clear. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { errorsOf } from '../support/config.ts';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

const VERIFIER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const CONSUMER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const NOBODY = 'http://127.0.0.1:9';
const encoding = { type: 'uint256', path: '$.v' };
const relayer = { network: 'sepolia', rpcUrl: NOBODY, relayerUrl: NOBODY, verifier: VERIFIER };

describe('an endpoint with `encrypt`, whose relayer cannot be reached', async () => {
  const endpoints = {
    encrypted: { encoding, encrypt: { type: 'euint8', contract: CONSUMER } },
    plain: { encoding },
  };
  const answers = { '*': faults.json({ v: 7 }) };
  const { encoded, refused } = await served(suite, endpoints, { answers, settings: { fhe: relayer } });

  it('signs nothing that is not encrypted: 502 `FHE encryption failed`', () =>
    refused(502, 'FHE encryption failed', 'encrypted'));

  it('leaves endpoints without `encrypt` alone', async () => {
    assert.equal((await encoded('plain')).data, `0x${'7'.padStart(64, '0')}`);
  });
});

describe('`settings.fhe`', () => {
  const errors = (more: Readonly<Record<string, unknown>>, own?: unknown) => {
    const plugins = own === undefined ? [] : [{ source: 'builtin:fhe', config: own }];
    return errorsOf(oneApi(NOBODY, { plain: {} }, { settings: { fhe: { ...relayer, ...more }, plugins } }));
  };

  it('names URLs, of which the node`s may hold credentials and the relayer`s may not', async () => {
    for (const [urls, ...lines] of [
      [{ rpcUrl: 'https://user:pass@rpc.example/key?k=v' }],
      [{ rpcUrl: 'https://', relayerUrl: 'https://' }, 'rpcUrl: is no valid URL', 'relayerUrl: is no valid URL'],
      [
        { relayerUrl: 'https://user:pass@relayer.example/v2' },
        'relayerUrl: must hold no user name or password: use apiKey',
      ],
      [{ relayerUrl: 'https://relayer.example/v2?key=v' }, 'relayerUrl: must hold no query or fragment'],
      [{ relayerUrl: 'https://relayer.example/v2#v2' }, 'relayerUrl: must hold no query or fragment'],
    ] as const)
      assert.deepEqual(
        await errors(urls),
        lines.map((line) => `settings.fhe.${line}`),
      );
  });

  it('holds an API key that a header can carry, which no error shows', async () => {
    const wrong = 'settings.fhe.apiKey: is empty or holds a character that no header can carry';
    for (const apiKey of ['', ' ', 'two\nlines', 'ключ']) assert.deepEqual(await errors({ apiKey }), [wrong]);
    assert.deepEqual(await errors({ apiKey: 'plain' }), []);
  });

  it('goes with a config of the plugin for workers, queue and lifetime', async () => {
    assert.deepEqual(await errors({}, { workers: 2, queue: 0, lifetime: 0 }), []);
    for (const own of [{ workers: 0 }, { queue: -1 }, { lifetime: 0.5 }, { worker: 1 }]) {
      assert.equal((await errors({}, own)).length, 1, JSON.stringify(own));
    }
  });
});
