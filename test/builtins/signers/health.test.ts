/** A signer that nobody asks is probed, and is away when it fails twice. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SignerHealth } from '../../../builtins/sign-eip191/signer-health.ts';
import type { Log } from '../../../plugins-sdk/log.ts';

it('a signer that nobody asks is probed after half a minute, and is away when it fails twice', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const pass = async (milliseconds: number) => {
    now += milliseconds;
    t.mock.timers.tick(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const said: string[] = [];
  const note = (message: string) => void said.push(message);
  const log: Log = { debug: note, info: note, warn: note, error: note };
  let probes = 0;
  let fault: Error | undefined;
  const probe = async () => {
    probes += 1;
    if (fault !== undefined) throw fault;
  };
  const health = new SignerHealth({ signer: 's', log, probe });
  health.start();
  await pass(20_000);
  health.succeeded();
  await pass(29_999);
  assert.equal(probes, 0, 'the last signature is not long ago');
  await pass(1);
  assert.equal(probes, 1);
  fault = new Error('no');
  await pass(30_000);
  assert.deepEqual([probes, health.isAvailable], [2, true]);
  await pass(1000);
  assert.deepEqual([probes, health.isAvailable], [3, false]);
  fault = undefined;
  await pass(1000);
  assert.deepEqual([probes, health.isAvailable], [4, true]);
  health.stop();
  await pass(100_000);
  assert.equal(probes, 4);
  assert.deepEqual(said, ['a signer is away: answers that need its signature are refused', 'a signer is back']);
});
