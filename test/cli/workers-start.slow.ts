/** What keeps workers from starting is said once. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { runCommandLine } from '../../cli/command-line.ts';
import { describeError } from '../../service/terminal.ts';
import { hostOf } from '../support/https.ts';
import { failed, folderWith, launchCli, runCli } from './run.ts';
import { configText, KEY } from './service-config.ts';

/** A plugin with engines, and with a mode and an auth method that need one. */
const PLUGIN = `export default {
  name: 'p',
  modes: ['later'],
  auth: { club: { type: 'object', properties: {} } },
  requiresSharedState: { modes: ['later'], auth: ['club'] },
  engines: { together: { schema: { type: 'object', properties: {} }, open() { throw new Error('opened'); } } },
  setup: () => ({}),
};`;

function startTwo(t: TestContext, config: string, plugin = PLUGIN, args: readonly string[] = ['--workers', '2']) {
  return folderWith(t, { 'c.yaml': config, 'p.mjs': plugin }).then(
    (cwd) => launchCli(t, ['start', '-c', 'c.yaml', ...args], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } }).ended,
  );
}

const settings = (state = '') => `settings: { plugins: [{ source: ./p.mjs }]${state} }`;
const needing = configText('https://api.example.com', settings())
  .replace('path: /eth', 'path: /eth\n        mode: later')
  .replace('path: /all', 'path: /all\n        auth: [{ type: club }, { type: free }]');

describe('what keeps workers from starting is said once', { concurrency: 3 }, () => {
  for (const value of ['0', '257', 'x', '1.5', '+2']) {
    it(`--workers ${value}`, async () => {
      await assert.rejects(runCommandLine(['start', '-c', 'c.yaml', '--workers', value]), (error) => {
        const line = `option --workers <n> must be a whole number from 1 to 256, not "${value}"`;
        assert.deepEqual(describeError(error), [line]);
        return true;
      });
    });
  }

  it('server.workers that is no number of them', async (t) => {
    for (const [count, rule] of Object.entries({ 0: 'at least 1', 257: 'at most 256' })) {
      const ended = await startTwo(t, configText().replace('port: 0', `port: 0, workers: ${count}`), PLUGIN, []);
      assert.deepEqual(ended, failed(`server.workers: must be ${rule} (line 2)`));
    }
  });

  it('what needs state that is shared, and none is', async (t) => {
    const why =
      'needs state that all workers share: set settings.state to an engine for several processes, such as file or redis or together';
    const lines = [`server.workers: mode "later" ${why}`, `server.workers: auth "club" ${why}`];
    assert.deepEqual(await startTwo(t, needing), failed(...lines));
    const cwd = await folderWith(t, { 'c.yaml': needing.replace('port: 0', 'workers: 2'), 'p.mjs': PLUGIN });
    assert.deepEqual(await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }), failed(...lines));
  });

  it('nothing with an engine for several processes, which is then opened, with the number in the config', async (t) => {
    const config = needing
      .replace(settings(), settings(', state: { type: together }'))
      .replace('port: 0', 'port: 0, workers: 2');
    const { code, stderr } = await startTwo(t, config, PLUGIN, []);
    assert.deepEqual([code, stderr], [1, 'error: opened\n']);
  });

  it('a port in use', async (t) => {
    const host = await hostOf(t, createServer());
    const { code, stderr } = await startTwo(t, configText().replace('port: 0', `port: ${host.split(':')[1]}`));
    const why = 'the port is in use: end what has it, or set another server.port';
    assert.deepEqual([code, stderr], [1, `error: cannot listen on ${host}: ${why}\n`]);
  });

  it('the end of one of them', async (t) => {
    const plugin = `if (process.send !== undefined) process.kill(process.pid, 'SIGKILL');`;
    const ended = await startTwo(t, configText('https://api.example.com', settings()), plugin);
    assert.equal(ended.stderr, 'error: a worker was ended by SIGKILL before it was ready\n');
    assert.equal(ended.code, 1);
  });

  it('a config in a pipe, which can be read once', async (t) => {
    const cwd = await folderWith(t);
    execFileSync('mkfifo', [join(cwd, 'c.yaml')]);
    const args = ['start', '-c', 'c.yaml', '--workers', '2'];
    const ended = await launchCli(t, args, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } }).ended;
    const why = 'is a pipe, which several workers cannot read: give a file';
    assert.deepEqual(ended, failed(`${join(cwd, 'c.yaml')}: ${why}`));
  });
});

it('a signal while workers start ends them all', async (t) => {
  const plugin = `console.log('loading'); await new Promise((done) => setTimeout(done, 60_000));`;
  const cwd = await folderWith(t, { 'c.yaml': configText('https://api.example.com', settings()), 'p.mjs': plugin });
  const args = ['start', '-c', 'c.yaml', '--workers', '2'];
  const running = launchCli(t, args, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  await running.output(/loading\n/);
  const { code, stdout, stderr } = await running.stop();
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /INFO stopped\n$/);
});

it('one worker is one process', async (t) => {
  const plugin = `console.log(process.send === undefined ? 'alone' : 'among others'); export default { name: 'p', hooks: { onResponseSent() {} } };`;
  const config = configText('https://api.example.com', settings()).replace('port: 0', 'port: 0, workers: 2');
  const cwd = await folderWith(t, { 'c.yaml': config, 'p.mjs': plugin });
  const args = ['start', '-c', 'c.yaml', '--workers', '1'];
  const running = launchCli(t, args, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  await running.output(/^alone\n/);
  await running.output(/INFO prices\/all 0x[0-9a-f]{64}\n/);
  assert.equal((await running.stop()).code, 0);
});
