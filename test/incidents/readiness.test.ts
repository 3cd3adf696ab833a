/** /ready tells the cause of an incident. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getBytes, Wallet } from 'ethers';
import { assertFires, withoutPromtool } from '../support/alerts.ts';
import { foundInLog } from '../support/incidents.ts';
import { scrape } from '../support/metrics.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

describe('an incident', { skip: withoutPromtool }, () => {
  it('of a signer that does not sign', async (t) => {
    const wallet = Wallet.createRandom();
    const rpc: Handler = async (req, res, recorded) => {
      const { id, params } = JSON.parse(recorded.body);
      const result = await wallet.signMessage(getBytes(String(params[0])));
      return faults.json({ jsonrpc: '2.0', id, result })(req, res, recorded);
    };
    const vault = await upstreamFor(t, { '/': rpc });
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }) });
    const signer = { type: 'json-rpc', url: vault.url, address: wallet.address };
    const config = oneApi(upstream.url, { price: {} }, { settings: { metrics: { port: 0 }, signer } });
    const service = await serviceFor(t, config, { env: { LOG_FORMAT: 'json' } });
    const before = await scrape(service);
    vault.on('/', faults.empty(503));
    assert.equal((await service.post('api/price')).status, 502);
    await eventually(() => /a signer is away/.test(service.written()));
    assert.equal((await fetch(`${service.url}/ready`)).status, 503);
    const symptom = '`/ready` has a signer in `away`, or answers are `502 Signing failed`';
    assert.deepEqual(await foundInLog(symptom, service.written()), [
      { signer: 'settings.signer (json-rpc)', error: 'JsonRpcFailure: personal_sign: HTTP status 503' },
    ]);
    const seen = [
      { scrape: before, minutes: 5 },
      { scrape: await scrape(service), minutes: 3 },
    ];
    await assertFires(t, seen, ['SignerAway', 'SignerFails']);
  });
});
