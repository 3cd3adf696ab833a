/** /ready tells the cause of an incident. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { getBytes, Wallet } from 'ethers';
import { folderWith, launchCli } from '../cli/run.ts';
import { configText, endpointId, KEY, specifications } from '../cli/service-config.ts';
import { urlOf } from '../cli/started.ts';
import { assertFires, withoutPromtool } from '../support/alerts.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { foundInLog } from '../support/incidents.ts';
import { Scrape } from '../support/metrics.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

/** A service with its log as operators have it. @param settings beside those of the metrics, in YAML. */
async function start(t: TestContext, handler: Handler, settings = '') {
  const upstream = await upstreamFor(t, { '*': handler });
  const config = configText(upstream.url, `settings: { metrics: { port: 0 }${settings} }`);
  const cwd = await folderWith(t, { 'c.yaml': config });
  const env = { SERVICE_PRIVATE_KEY: KEY, LOG_FORMAT: 'json' };
  const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env });
  const [, metrics = ''] = await running.output(/metrics on (\S+\/metrics)/);
  const url = await urlOf(running);
  const endpoint = `${url}/endpoints/${endpointId(specifications(upstream.url).eth)}`;
  return {
    log: running.written,
    ready: async () => (await fetch(`${url}/ready`)).status,
    ask: async () => (await fetch(endpoint, { method: 'POST', headers: JSON_HEADERS, body: '{}' })).status,
    scrape: async () => new Scrape(await (await fetch(metrics)).text()),
  };
}

describe('an incident', { skip: withoutPromtool }, () => {
  it('of a signer that does not sign', async (t) => {
    const wallet = Wallet.createRandom();
    const rpc: Handler = async (req, res, recorded) => {
      const { id, params } = JSON.parse(recorded.body);
      const result = await wallet.signMessage(getBytes(String(params[0])));
      return faults.json({ jsonrpc: '2.0', id, result })(req, res, recorded);
    };
    const vault = await upstreamFor(t, { '/': rpc });
    const signer = `, signer: { type: json-rpc, url: '${vault.url}', address: '${wallet.address}' }`;
    const service = await start(t, faults.json({ price: 7 }), signer);
    const before = await service.scrape();
    vault.on('/', faults.empty(503));
    assert.equal(await service.ask(), 502);
    await eventually(() => /a signer is away/.test(service.log()));
    assert.equal(await service.ready(), 503);
    const symptom = '`/ready` has a signer in `away`, or answers are `502 Signing failed`';
    assert.deepEqual(await foundInLog(symptom, service.log()), [
      { signer: 'settings.signer (json-rpc)', error: 'JsonRpcFailure: personal_sign: HTTP status 503' },
    ]);
    const seen = [
      { scrape: before, minutes: 5 },
      { scrape: await service.scrape(), minutes: 3 },
    ];
    await assertFires(t, seen, ['SignerAway', 'SignerFails']);
  });
});
