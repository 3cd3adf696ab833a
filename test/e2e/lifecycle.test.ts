/** A stop finishes what has begun, takes nothing new, and is not held up. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, launchCli } from '../cli/run.ts';
import { oneApi } from '../support/answers.ts';
import { submitted } from '../support/async.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { acts, notes, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { type RunningService, serviceFor, startTestService, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { faults, type Upstream, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const encoding = { type: 'uint256', path: '$.price' };

async function heldUpstream(t: TestContext): Promise<{ upstream: Upstream; release: () => void }> {
  const waiting: ServerResponse[] = [];
  const upstream = await upstreamFor(t, { '/held': (_req, res) => void waiting.push(res) });
  return {
    upstream,
    release: () => {
      for (const res of waiting.splice(0)) res.setHeader('content-type', 'application/json').end('{"price": 5}');
    },
  };
}

const tell = `export default { name: 'tell', hooks: { onResponseSent: ({ endpoint }) => console.log('signed ' + endpoint) } };`;

describe('SIGTERM and SIGINT', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`${signal}: sync, stream and async work is finished, nothing new is accepted, repeating it changes nothing`, async (t) => {
      const { upstream, release } = await heldUpstream(t);
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

      const idle = connect(Number(new URL(String(url)).port), '127.0.0.1');
      idle.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(idle, 'data');
      const answers = [post('sync'), post('stream')];
      await submitted(await post('async'));
      await upstream.untilRequested('/held', 3);

      running.child.kill(signal);
      await running.output(new RegExp(`stopping signal=${signal}\\n`));
      // An idle connection is closed at once, although others are still at work.
      if (!idle.closed) await once(idle, 'close');
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

describe('stopping is not held up', () => {
  const cutOff = (service: RunningService) => service.logs.filter(({ message }) => message.includes('cut off'));
  const portOf = (service: RunningService) => Number(new URL(service.url).port);

  async function quick(t: TestContext, more: object = {}, plugins = pluginFiles({})) {
    const upstream = await upstreamFor(t);
    upstream.json('/quick', { price: 1 });
    upstream.on('/hang', faults.hang());
    const { files } = plugins;
    const endpoints = { quick: { encoding }, hang: { encoding } };
    const config = oneApi(upstream.url, endpoints, {
      api: { timeout: 300 },
      settings: { plugins: plugins.plugins },
      ...more,
    });
    return { upstream, service: await startTestService(config, { files }) };
  }

  it('by idle keep-alive connections', async (t) => {
    const { service } = await quick(t);
    const sockets = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const socket = connect(portOf(service), '127.0.0.1');
        socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
        await once(socket, 'data');
        return socket;
      }),
    );
    await service.stop();
    assert.deepEqual(cutOff(service), []);
    for (const socket of sockets) if (!socket.closed) await once(socket, 'close');
  });

  it('by connections that have never sent anything', async (t) => {
    const { service } = await quick(t);
    const socket = connect(portOf(service), '127.0.0.1');
    await once(socket, 'connect');
    // The service has accepted it once it has answered one that came later.
    await (await fetch(`${service.url}/health`)).text();
    await service.stop();
    assert.deepEqual(cutOff(service), []);
    if (!socket.closed) await once(socket.resume(), 'close');
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
    while (answers < 10) await new Promise((resolve) => setTimeout(resolve, 1));
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
    const { service } = await quick(t, {}, pluginFiles({ stuck: puppetFile('stuck') }, { stuck: { timeout: 300 } }));
    await (await service.post('api/quick')).text();
    await notes.until('stuck');
    await service.stop();
    assert.deepEqual(notes.of('aborted'), [undefined], 'it had its time');
    assert.deepEqual(cutOff(service), []);
    acts.clear();
  });

  it('and done twice it is done once', async (t) => {
    const { service } = await quick(t);
    const inner: RunningService = service;
    await Promise.all([inner.stop(), fetch(`${service.url}/health`).catch(() => undefined)]);
    await assert.rejects(fetch(`${service.url}/health`), TypeError);
  });
});

describe('start-up', () => {
  it('logs the address, the signer and one line per endpoint in the order of the file', async (t) => {
    const upstream = await upstreamFor(t);
    const service = await serviceFor(t, {
      apis: [
        {
          name: 'b api',
          url: upstream.url,
          auth: { type: 'free' },
          endpoints: [
            { name: 'z', path: '/z' },
            { name: 'a', path: '/a' },
          ],
        },
        { name: 'a', url: upstream.url, auth: { type: 'free' }, endpoints: [{ name: 'z', path: '/q', mode: 'async' }] },
      ],
    });
    const lines = service.logs.filter(({ level }) => level === 'info').map(({ message }) => message);
    assert.match(lines[0] ?? '', /^signed-data-proxy \d/);
    assert.equal(lines[1], `listening on ${service.url}`);
    assert.equal(lines[2], `signer ${TEST_ADDRESS}`);
    assert.deepEqual(
      lines.slice(3).map((line) => line.replace(/0x[0-9a-f]{64}$/, '<id>')),
      ['b api/z <id>', 'b api/a <id>', 'a/z <id>'],
    );
  });

  it('each request is logged with endpoint ID, response status and processing time', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.json('/a', 1);
    const service = await serviceFor(t, oneApi(upstream.url, { a: {} }));
    service.logs.length = 0;
    const response = await service.post('api/a');
    await response.text();
    await (await service.post('api/a', 7)).text();
    while (service.logs.filter(({ level }) => level === 'info').length < 2) await new Promise((r) => setTimeout(r, 1));
    const [first, second] = service.logs.filter(({ level }) => level === 'info');
    assert.match(String(first?.message), /^api\/a 200 \d+(\.\d)?ms$/);
    assert.equal(first?.fields.requestId, response.headers.get('x-request-id'));
    assert.equal(
      Object.entries(first?.fields ?? {})
        .at(-1)
        ?.join('='),
      `endpointId=${service.ids['api/a']}`,
    );
    assert.match(String(second?.message), /^api\/a 400 \d+(\.\d)?ms$/);
  });
});
