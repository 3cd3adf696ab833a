/** A worker that takes the place of another has the address, the state and the key of the rest. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { folderWith, launchCli } from './run.ts';
import { configText, KEY } from './service-config.ts';

/** An engine that says where it is opened, and by which process. */
const PLUGIN = `export default {
  name: 'p',
  engines: {
    own: {
      schema: { type: 'object', properties: { place: { type: 'string' } } },
      open: ({ place }) => ({
        start: async () => console.log('opened ' + place + ' ' + process.pid),
        doubts: () => [],
        area: () => ({
          get: async () => undefined,
          compareAndSet: async () => undefined,
          takeTokens: async () => ({ granted: 1, retryAfter: 0, left: 0 }),
        }),
        close: async () => undefined,
      }),
    },
  },
  setup: () => ({}),
};`;

const configAt = (place: string) =>
  configText(undefined, `settings: { plugins: [{ source: ./p.mjs }], state: { type: own, place: ${place} } }`);
const envWith = (key: string) => `SERVICE_PRIVATE_KEY=${key}\n`;

it('a worker that takes the place of another has the address, the state and the key of those that are there', async (t) => {
  const files = { 'c.yaml': configAt('here'), 'p.mjs': PLUGIN, '.env': envWith(KEY) };
  const cwd = await folderWith(t, files);
  const write = (name: string, text: string) => writeFile(join(cwd, name), text);
  const { child, output, written, stop } = launchCli(t, ['start', '-c', 'c.yaml', '--workers', '2'], { cwd });
  await output(/2 workers are ready/);
  const workers = () => [...written().matchAll(/^opened \w+ (\d+)$/gm)].map(([, pid]) => Number(pid));
  const refusal =
    'ERROR server\\.host, server\\.port, settings\\.state or the signing key is not that of the other workers: restart the service, or restore the files ' +
    'worker=\\d\\n\\S+ ERROR a worker cannot start: it is replaced in \\d+ ms[^\\n]*\\n';
  const ready = 'a worker is ready';

  await write('c.yaml', configAt('there'));
  child.kill('SIGHUP');
  await output(/settings\.state: stays as it is until the service is restarted/);
  process.kill(workers()[0] ?? 0, 'SIGKILL');
  await output(new RegExp(refusal));
  await write('c.yaml', configAt('here'));
  await output(new RegExp(ready));

  await write('.env', envWith(`0x${'1'.repeat(64)}`));
  process.kill(workers()[1] ?? 0, 'SIGKILL');
  await output(new RegExp(`${ready}[\\s\\S]*${refusal}`));
  await write('.env', envWith(KEY));
  await output(new RegExp(`${ready}[\\s\\S]*${ready}`));

  await write('c.yaml', configAt('here').replace('port: 0', 'port: 0, host: 127.0.0.2'));
  process.kill(workers().at(-1) ?? 0, 'SIGKILL');
  await output(new RegExp(`${ready}[\\s\\S]*${ready}[\\s\\S]*${refusal}`));
  await write('c.yaml', configAt('here'));
  await output(new RegExp(`${ready}[\\s\\S]*${ready}[\\s\\S]*${ready}`));
  assert.equal((await stop()).code, 0);
});
