/** A command waits for a service at work, and not for one that is stopped. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { askControl, controlAt, controlPaths } from '../../service/control.ts';
import { folderWith, launchCli } from './run.ts';
import { KEY } from './service-config.ts';
import { urlOf } from './started.ts';

const ID = `0x${'1'.repeat(64)}`;
const NATIVE = `0x${'0'.repeat(40)}`;

it('a service that is stopped is named, with what to do; one that goes on is asked again', async (t) => {
  const terms = { network: 1, rpc: 'http://127.0.0.1:1', token: NATIVE, amount: '1', recipient: `0x${'1'.repeat(40)}` };
  const api = {
    name: 'a',
    url: 'http://127.0.0.1:1',
    auth: { type: 'x402', ...terms },
    endpoints: [{ name: 'e', path: '/' }],
  };
  const config = {
    version: '1.0',
    server: { port: 0 },
    apis: [api],
    settings: { state: { type: 'file', path: 'state' } },
  };
  const cwd = await folderWith(t, { 'c.yaml': JSON.stringify(config) });
  const service = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  await urlOf(service);
  const show = async () => {
    const { code, stdout, stderr } = await launchCli(t, ['payments', ID, '-c', 'c.yaml'], { cwd }).ended;
    return { code, stdout, stderr };
  };
  service.child.kill('SIGSTOP');
  assert.deepEqual(await show(), {
    code: 1,
    stdout: '',
    stderr: `error: the service that listens at ${controlPaths(join(cwd, 'c.yaml'))[0]} was silent for 5000 ms: it is stopped or blocked. Have it go on, or end it, and look with "payments" before you try again: it may yet do what it was asked\n`,
  });
  service.child.kill('SIGCONT');
  const unknown = `error: nothing is known of ${ID}: look for it in the log\n`;
  assert.deepEqual(await show(), { code: 1, stdout: '', stderr: unknown });
});

it('a service that works on it is waited for', async (t) => {
  const [path] = controlPaths(join(await folderWith(t), 'c.yaml'));
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const slow = async () => {
    await setTimeout(7000);
    return [{ result: 'done' }];
  };
  const control = controlAt(path, log, () => [['payments reconcile', slow]]);
  await control.open();
  t.after(() => control.close());
  assert.deepEqual(await askControl(path, { name: 'payments reconcile', words: {} }), [{ result: 'done' }]);
});
