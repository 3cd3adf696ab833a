/** A stop finishes what has begun, takes nothing new, and is not held up. */

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, launchCli } from '../cli/run.ts';
import { submitted } from '../support/async.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { acts, notes, pluginFiles, pluginTools, puppetFile } from '../support/plugin-files.ts';
import { openRaw } from '../support/raw-http.ts';
import {
  encoding,
  oneApi,
  type RunningService,
  serviceFor,
  startTestService,
  TEST_ADDRESS,
  TEST_KEY,
} from '../support/service.ts';
import { faults, holding, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

/** A kept-alive connection that has been answered once. */
async function kept(url: unknown) {
  const client = openRaw(String(url));
  client.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
  await client.until((text) => text.includes('"ok"'));
  return client;
}

const tell = `export default { name: 'tell', hooks: { onResponseSent: ({ endpoint }) => console.log('signed ' + endpoint) } };`;

describe('SIGTERM and SIGINT', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`${signal}: sync, stream and async work is finished, nothing new is accepted, repeating it changes nothing`, async (t) => {
      const { hold, release } = holding();
      const upstream = await upstreamFor(t, { '/held': hold });
      const config = oneApi(
        upstream.url,
        {
          sync: { path: '/held', encoding },
          stream: { path: '/held?s', encoding, mode: 'stream' },
          async: { path: '/held?a', encoding, mode: 'async' },
        },
        { version: '1.0', server: { port: 0 }, settings: { plugins: [{ source: './tell.mjs' }] } },
      );
      const cwd = await folderWith(t, { 'c.yaml': stringify(config), 'tell.mjs': tell });
      const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: TEST_KEY } });
      const [, url] = await running.output(/listening on (http:\/\/\S+)/);
      const idOf = async (name: string) => (await running.output(new RegExp(`api/${name} (0x[0-9a-f]{64})\\n`)))[1];
      const post = async (name: string) =>
        fetch(`${url}/endpoints/${await idOf(name)}`, { method: 'POST', headers: JSON_HEADERS, body: '{}' });

      const idle = await kept(url);
      const answers = [post('sync'), post('stream')];
      await submitted(await post('async'));
      await upstream.untilRequested('/held', 3);

      running.child.kill(signal);
      await running.output(new RegExp(`stopping signal=${signal}\\n`));
      // An idle connection is closed at once, although others are still at work.
      await idle.closed;
      running.child.kill('SIGTERM');
      running.child.kill('SIGINT');
      await assert.rejects(fetch(`${url}/health`), TypeError);
      release();
      const [sync, stream] = await Promise.all(answers);
      assert.equal(BigInt((await verifyEncoded(sync, TEST_ADDRESS)).data), 5n);
      const frame = await stream?.text();
      const { done, ...signed } = JSON.parse(String(frame).replace('data: ', ''));
      assert.deepEqual([done, BigInt((await verifyEncoded(signed, TEST_ADDRESS)).data)], [true, 5n]);
      const { code, signal: killedBy, stdout, stderr } = await running.ended;
      assert.deepEqual([code, killedBy, stderr], [0, null, '']);
      for (const name of ['sync', 'stream', 'async']) assert.match(stdout, new RegExp(`^signed ${name}$`, 'm'));
      assert.match(stdout, /INFO stopped\n$/);
      assert.equal(stdout.match(/ stopping /g)?.length, 1);
      assert.doesNotMatch(stdout, /cut off/);
    });
  }
});

it('a plugin that was never started is not stopped', async () => {
  const idle = `${pluginTools}export default { name: 'idle', setup: () => ({ stop() { note('idle', 'stopped'); } }) };`;
  const { files, plugins } = pluginFiles({ idle });
  const settings = { plugins, state: { type: 'file', path: './no/such/folder/state' } };
  const starting = startTestService(oneApi('http://127.0.0.1:9', { e: {} }, { settings }), { files });
  await assert.rejects(starting, /^Error: settings\.state/);
  assert.deepEqual(notes.of('idle'), []);
});

it('plugins of a failed start see the config that would be in force, and have their time to stop', async () => {
  const early = `${pluginTools}export default { name: 'early', setup: ({ status }) => ({
      start() { note('generation', status.read().service.generation); },
      stop(patience) { note('patience', patience); },
    }) };`;
  const late = `export default { name: 'late', setup: () => ({ start() { throw new Error('not today'); } }) };`;
  const { files, plugins } = pluginFiles({ early, late });
  const starting = startTestService(oneApi('http://127.0.0.1:9', { e: {} }, { settings: { plugins } }), { files });
  await assert.rejects(starting, { message: 'plugin "late" cannot start: not today' });
  assert.deepEqual([notes.of('generation'), notes.of('patience')], [[1], [5000]]);
});

describe('stopping is not held up', () => {
  const cutOff = (service: RunningService) => service.logs.filter(({ message }) => message.includes('cut off'));

  async function quick(t: TestContext, { files, plugins } = pluginFiles({})) {
    const upstream = await upstreamFor(t, { '/quick': faults.json({ price: 1 }), '/hang': faults.hang() });
    const config = oneApi(upstream.url, { quick: {}, hang: {} }, { api: { timeout: 300 }, settings: { plugins } });
    return { upstream, service: await startTestService(config, { files }) };
  }

  it('by connections that wait for nothing, and those that have never sent anything', async (t) => {
    const { service } = await quick(t);
    const silent = openRaw(service.url);
    await silent.sent('');
    // The service has accepted it once it has answered one that came later.
    const clients = await Promise.all(Array.from({ length: 5 }, () => kept(service.url)));
    await service.stop();
    assert.deepEqual(cutOff(service), []);
    for (const { closed } of [silent, ...clients]) await closed;
  });

  it('by a client that never pauses on its kept-alive connection', async (t) => {
    const { service } = await quick(t);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    let answers = 0;
    const ask = () =>
      new Promise<number | undefined>((resolve, reject) => {
        request(`${service.url}/health`, { agent }, (response) => {
          response.resume().once('end', () => resolve(response.statusCode));
        })
          .once('error', reject)
          .end();
      });
    const loop = (async () => {
      for (;;) {
        assert.equal(await ask(), 200);
        answers += 1;
      }
    })().catch((error) => error.code);
    await eventually(() => answers >= 10);
    await service.stop();
    assert.deepEqual(cutOff(service), []);
    assert.match(String(await loop), /^(ECONNREFUSED|ECONNRESET|EPIPE)$/);
  });

  it('by an upstream that hangs: its timeout ends the request with 502', async (t) => {
    const { service, upstream } = await quick(t);
    const answer = service.post('api/hang');
    await upstream.untilRequested('/hang');
    await service.stop();
    const response = await answer;
    assert.deepEqual([response.status, await response.json()], [502, { error: 'API call failed' }]);
    assert.deepEqual(cutOff(service), []);
  });

  it('by an observer that is stuck: its budget ends', async (t) => {
    acts.set('stuck onResponseSent', ({ signal }) => {
      (signal as AbortSignal).addEventListener('abort', () => notes.add('aborted'));
      notes.add('stuck');
      return new Promise(() => undefined);
    });
    const { service } = await quick(t, pluginFiles({ stuck: puppetFile('stuck') }, { stuck: { timeout: 300 } }));
    await (await service.post('api/quick')).text();
    await notes.until('stuck');
    await service.stop();
    assert.deepEqual(notes.of('aborted'), [undefined], 'it had its time');
    assert.deepEqual(cutOff(service), []);
    acts.clear();
  });

  it('and done twice it is done once', async (t) => {
    const { service } = await quick(t);
    await Promise.all([service.stop(), fetch(`${service.url}/health`).catch(() => undefined)]);
    await assert.rejects(fetch(`${service.url}/health`), TypeError);
  });
});

describe('start-up', () => {
  it('logs the address, the signer and one line per endpoint in the order of the file', async (t) => {
    const api = (name: string, endpoints: object) =>
      oneApi('http://127.0.0.1:9', { ...endpoints }, { api: { name } }).apis[0];
    const apis = [api('b api', { z: {}, a: {} }), api('a', { z: { path: '/q', mode: 'async' } })];
    const service = await serviceFor(t, { apis });
    const lines = service.logs.filter(({ level }) => level === 'info').map(({ message }) => message);
    const [version = '', ...others] = lines.map((line) => line.replace(/0x[0-9a-f]{64}$/, '<id>'));
    assert.match(version, /^signed-data-proxy \d/);
    const endpoints = ['b api/z <id>', 'b api/a <id>', 'a/z <id>'];
    assert.deepEqual(others, [`listening on ${service.url}`, `signer ${TEST_ADDRESS}`, ...endpoints]);
  });
});
