/** Workers change their signer together. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { SECOND, signerPlugin, THIRD } from '../support/signer-plugin.ts';
import { folderWith, launchCli } from './run.ts';
import { configText } from './service-config.ts';
import { urlOf } from './started.ts';

/** A line of YAML. */
const settings = (signer: object) =>
  `settings: ${JSON.stringify({ plugins: [{ source: './signer.mjs' }], signer: { type: 'kept', ...signer } })}`;

it('workers change their signer together, and one that is replaced has the new one', async (t) => {
  const before = settings({ key: SECOND.privateKey, next: { type: 'kept', key: THIRD.privateKey } });
  const cwd = await folderWith(t, { 'c.yaml': configText(undefined, before), 'signer.mjs': signerPlugin('workers') });
  const running = launchCli(t, ['start', '-c', 'c.yaml', '--workers', '2'], { cwd, env: {} });
  const url = await urlOf(running);
  await running.output(/2 workers are ready/);
  const nodes = async () => {
    const records = Array.from({ length: 12 }, async () => {
      const response = await fetch(`${url}/health`, { headers: { Connection: 'close' } });
      return Object(await response.json()).node;
    });
    return [...new Set(await Promise.all(records))];
  };
  assert.deepEqual(await nodes(), [SECOND.address]);
  await writeFile(join(cwd, 'c.yaml'), configText(undefined, settings({ key: THIRD.privateKey })));
  running.child.kill('SIGHUP');
  await running.output(/the new config is in force/);
  assert.deepEqual(await nodes(), [THIRD.address]);
  await running.output(new RegExp(`answers are signed by ${THIRD.address} instead of ${SECOND.address}`));
  const faulty = settings({ key: SECOND.privateKey, fault: 'dead' });
  await writeFile(join(cwd, 'c.yaml'), configText(undefined, faulty));
  running.child.kill('SIGHUP');
  await running.output(/settings\.signer \(kept\) does not sign: the vault says no/);
  assert.deepEqual(await nodes(), [THIRD.address]);
});
