/** What x402-exact asks, warns of, and needs when the service starts. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, launch, PROGRAM } from '../cli/run.ts';
import { leaveOut } from '../support/hide.ts';
import { oneApi, serviceFor, startTestService, TEST_KEY } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';
import { RECIPIENT } from '../support/x402.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const sold = { network: 'eip155:8453', asset: USDC, amount: '10000', payTo: RECIPIENT };
const accept = { ...sold, extra: { name: 'USD Coin', version: '2' } };
const terms = { type: 'x402-exact', facilitator: 'https://facilitator.example.com', accepts: [accept] };
const config = (auth: object) => oneApi('https://api.example.com', { e: {} }, { api: { auth } });

describe('x402-exact at the start', () => {
  it('warns of a facilitator that does not support what is accepted, or is away', async (t) => {
    const facilitator = await upstreamFor(t);
    const kind = { x402Version: 2, scheme: 'exact', network: 'eip155:1' };
    const cases: [Parameters<typeof facilitator.on>[1], RegExp][] = [
      [faults.json({ kinds: [kind] }), /does not say that it settles exact payments on eip155:8453$/],
      [faults.json({ kinds: [{ ...kind, network: 'eip155:8453', x402Version: 1 }] }), /does not say that it settles/],
      [faults.serverError(), /could not be asked what it supports$/],
    ];
    for (const [handler, expected] of cases) {
      facilitator.on('/supported', handler);
      const service = await serviceFor(t, config({ ...terms, facilitator: facilitator.url }));
      const isTold = () => service.logs.find(({ message }) => message.includes('facilitator'));
      const told = await eventually(isTold, 'a warning');
      assert.equal(told.level, 'warn');
      assert.match(told.message, expected);
    }
    facilitator.json('/supported', { kinds: [{ ...kind, network: 'eip155:8453' }] });
    const service = await startTestService(config({ ...terms, facilitator: facilitator.url }));
    await facilitator.untilIdle();
    await service.stop();
    assert.ok(!service.logs.some(({ message }) => message.includes('facilitator')));
  });

  it('needs no package of the protocol', async (t) => {
    const yaml = stringify({ version: '1.0', server: { port: 0 }, ...config(terms) });
    const cwd = await folderWith(t, { 'exact.yaml': yaml });
    const args = [...leaveOut('@x402/core'), PROGRAM, 'start', '-c', 'exact.yaml'];
    const started = launch(t, process.execPath, args, { cwd, env: { SERVICE_PRIVATE_KEY: TEST_KEY } });
    await started.output(/listening/);
    assert.equal((await started.stop()).code, 0);
  });
});
