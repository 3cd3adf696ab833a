/** An endpoint that must encrypt and cannot answers nothing in the clear. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
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
