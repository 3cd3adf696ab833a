/** A signer that opens too late is closed when it comes. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { startTestService } from '../support/service.ts';
import { SECOND } from '../support/signer-plugin.ts';
import { inTime } from '../support/wait.ts';

const VAULT = 'vault of test/cli/signers';

/** Milliseconds that a signer has to open. */
const OPEN_TIME = 30_000;

it('a signer that opens too late is closed when it comes', async (t) => {
  const vault = { open: () => {}, arrived: () => {}, close: () => {} };
  Reflect.set(globalThis, VAULT, vault);
  const arrived = new Promise<void>((resolve) => Object.assign(vault, { arrived: resolve }));
  const closed = new Promise<void>((resolve) => Object.assign(vault, { close: resolve }));
  const slow = `const vault = globalThis[${JSON.stringify(VAULT)}];
    const signer = { address: '${SECOND.address}', sign: () => '0x', close: async () => vault.close() };
    const open = () => new Promise((resolve) => { vault.open = () => resolve(signer); vault.arrived(); });
    const signers = { slow: { schema: { type: 'object', properties: {} }, open } };
    export default { name: 'slow-signer', signers, setup: () => ({}) };`;
  const settings = { plugins: [{ source: './slow.mjs' }], signer: { type: 'slow' } };
  const apis = [
    { name: 'a', url: 'https://example.com', auth: { type: 'free' }, endpoints: [{ name: 'e', path: '/' }] },
  ];
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const started = startTestService({ settings, apis }, { files: { 'slow.mjs': slow } });
  const refused = assert.rejects(started, { message: `settings.signer: is not ready after ${OPEN_TIME} ms` });
  await inTime(arrived, 'the signer to be opened');
  await turn();
  t.mock.timers.tick(OPEN_TIME);
  await refused;
  vault.open();
  await inTime(closed, 'the signer to be closed');
});
