/** `status` tells how a running service is, or why it cannot. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { packageVersion } from '../../service/surroundings.ts';
import { freePort } from '../state/redis-server.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, launchCli, runCli } from './run.ts';
import { configText, KEY } from './service-config.ts';

/** `status` asks a running service at the port of its metrics, and says what to do where there is nothing to ask. */
describe('status', { concurrency: 4 }, () => {
  it('prints what runs, for people and for programs', async (t) => {
    const port = await freePort();
    const settings = { metrics: { port } };
    const { folder: cwd } = await serviceFor(t, oneApi('https://api.example.com', { e: {} }, { settings }));
    const url = `http://127.0.0.1:${port}/metrics`;
    const [text, json] = await Promise.all([
      runCli(t, ['status', '-c', 'config.yaml'], { cwd }),
      runCli(t, ['status', '--url', url, '--json'], { cwd }),
    ]);
    const { ok, processes } = JSON.parse(json.stdout);
    assert.deepEqual([text.code, text.stderr, json.code, json.stderr, ok], [0, '', 0, '', true]);
    const [{ service, ...parts }, ...others] = processes;
    assert.deepEqual(others, []);
    const time = (value: string) => value.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'TIME');
    assert.equal(
      text.stdout.replace(/(\n {2}uptime: )\d+/, '$1N'),
      `service:
  config: ${join(cwd, 'config.yaml')}
  generation: 1
  inForceSince: ${service.inForceSince}
  lastReload: succeeded
  phase: serving
  node: "${TEST_ADDRESS}"
  version: ${packageVersion()}
  pid: ${service.pid}
  startedAt: ${service.startedAt}
  uptime: N
signers:
  - { role: current, type: environment, address: "${TEST_ADDRESS}", state: up }
engines: []
breakers: []
clients:
  top: []
  others: 0
  unnamed: 0
errors: []
`,
    );
    assert.deepEqual([time(service.inForceSince), time(service.startedAt)], ['TIME', 'TIME']);
    assert.deepEqual(Object.keys(parts), ['signers', 'engines', 'breakers', 'clients', 'errors']);
  });

  it('lists the processes of a service with workers', async (t) => {
    const port = await freePort();
    const cwd = await folderWith(t, { 'c.yaml': configText(undefined, `settings: { metrics: { port: ${port} } }`) });
    const words = ['start', '-c', 'c.yaml', '--workers', '2'];
    await launchCli(t, words, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } }).output(/workers are ready/);
    const { stdout } = await runCli(t, ['status', '-c', 'c.yaml', '--json'], { cwd });
    const { processes } = JSON.parse(stdout);
    const pids = processes.map(({ service }: { service: { pid: number } }) => service.pid);
    assert.deepEqual([processes.length, new Set(pids).size], [2, 2]);
    const { stdout: text } = await runCli(t, ['status', '-c', 'c.yaml'], { cwd });
    assert.deepEqual(text.match(/^(?:service:|---)$/gm), ['service:', '---', 'service:']);
    const request = 'GET /status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n';
    for (let i = 0; i < 8; i++)
      assert.match(await exchangeRaw(`http://127.0.0.1:${port}`, request), /^HTTP\/1\.1 403 /);
  });

  const both = 'one of -c, --config <file> and --url <url> must be given: each says where the metrics are';
  const nobody =
    'nothing listens there: start the service, restart it if settings.metrics is newer than its start, or give --url';

  it('says why it may not ask at that name', async (t) => {
    const why = 'Host not allowed: the operator can add it to settings.metrics.hosts';
    const { url } = await upstreamFor(t, { '/status': faults.json({ error: why }, 403) });
    const { code, stderr } = await runCli(t, ['status', '--url', url]);
    assert.deepEqual([code, stderr], [1, `error: ${url}/status: ${why}\n`]);
  });

  it('says what to do where no status is', async (t) => {
    const port = await freePort();
    const { url: other } = await upstreamFor(t);
    const files = {
      'off.yaml': configText(),
      'any.yaml': configText(undefined, 'settings: { metrics: { port: 0 } }'),
      // Wrong elsewhere, which is no reason not to ask.
      'wrong.yaml': `strange: 1\n${configText(undefined, `settings: { metrics: { port: ${port}, host: '0.0.0.0' } }`)}`,
    };
    const cwd = await folderWith(t, files);
    const file = (name: string) => join(cwd, name);
    const cases: readonly (readonly [words: readonly string[], message: string])[] = [
      [
        ['-c', 'off.yaml'],
        `${file('off.yaml')}: settings.metrics is missing, and a service shows its status on the port of its metrics: add "metrics: { port: 9464 }" to settings, and restart the service`,
      ],
      [
        ['-c', 'any.yaml'],
        `${file('any.yaml')}: settings.metrics.port is 0, and only the log of the service says which port it took: give it as --url`,
      ],
      [['-c', 'wrong.yaml'], `http://127.0.0.1:${port}/status: ${nobody}`],
      [['--url', `http://[::1]:${port}`], `http://[::1]:${port}/status: ${nobody}`],
      [
        ['--url', other],
        `${other}/status: answers with status 404 and no status: is it the port of a service's metrics?`,
      ],
      [[], both],
      [['-c', 'off.yaml', '--url', other], both],
      [['--url', 'x'], 'option --url <url> must be the URL of a service such as https://api.example.com'],
    ];
    await Promise.all(
      cases.map(async ([words, message]) => {
        const { code, stdout, stderr } = await runCli(t, ['status', ...words, '--json'], { cwd });
        assert.deepEqual(
          [code, JSON.parse(stdout), stderr],
          [1, { ok: false, errors: [{ message }] }, ''],
          words.join(' '),
        );
      }),
    );
    const { code, stdout, stderr } = await runCli(t, ['status', '--url', `http://127.0.0.1:${port}`], { cwd });
    assert.deepEqual([code, stdout, stderr], [1, '', `error: http://127.0.0.1:${port}/status: ${nobody}\n`]);
  });
});
