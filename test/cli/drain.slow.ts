/** A stop waits for what is under way, and file descriptors are left for upstreams. */

import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { openRaw } from '../support/raw-http.ts';
import { upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';
import { folderWith, launch, launchCli, PROGRAM } from './run.ts';
import { endpointId, KEY, specifications } from './service-config.ts';
import { urlOf } from './started.ts';

function configOf(url: string, more = ''): string {
  return `version: '1.0'
server: { port: 0, rateLimit: { max: 1000000 }${more} }
apis:
  - name: prices
    url: ${url}
    timeout: 60000
    auth: { type: free }
    endpoints:
      - { name: eth, path: /eth, encoding: { type: int256, path: $.price, times: '1e18' } }
`;
}

async function startService(t: TestContext, more = '', words: readonly string[] = []) {
  const upstream = await upstreamFor(t);
  upstream.json('/eth', { price: 1 });
  const cwd = await folderWith(t, { 'c.yaml': configOf(upstream.url, more) });
  const running = launchCli(t, ['start', '-c', 'c.yaml', ...words], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  const url = await urlOf(running);
  const path = `/endpoints/${endpointId(specifications(upstream.url).eth)}`;
  return { running, upstream, url, path };
}

/** One POST; its status, whether the connection goes on, or the code of the error. */
function post(url: string, path: string, agent: Agent): Promise<{ outcome: number | string; ends: boolean }> {
  return new Promise((resolve) => {
    const headers = { 'Content-Type': 'application/json' };
    const request = httpRequest(url + path, { method: 'POST', headers, agent }, (response) => {
      response.resume().on('end', () => {
        resolve({ outcome: response.statusCode ?? 0, ends: response.headers.connection === 'close' });
      });
    });
    request.on('error', (error: NodeJS.ErrnoException) =>
      resolve({ outcome: error.code ?? error.message, ends: true }),
    );
    request.end('{}');
  });
}

describe('SIGTERM', () => {
  it('loses no request that was sent, on a connection that a busy service has not accepted yet either', async (t) => {
    const { running, url, path } = await startService(t, ', connections: { max: 2000, perAddress: 2000 }');
    const busy = Array.from({ length: 30 }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      while (!(await post(url, path, agent)).ends);
    });
    await running.output(/^(?:.+\n){250}/);
    // While it stands still, its system takes the connections and what comes on them.
    running.child.kill('SIGSTOP');
    const sent = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
    // Fewer than the system queues.
    const clients = Array.from({ length: 200 }, () => openRaw(url));
    await Promise.all(clients.map((client) => client.sent(sent)));
    running.child.kill('SIGTERM');
    running.child.kill('SIGCONT');
    for (const text of await Promise.all(clients.map(({ closed }) => closed)))
      assert.match(text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\nConnection: close\r\n/);
    await Promise.all(busy);
    assert.equal((await running.ended).code, 0);
  });

  it('resets no client that sends one request after the other: the last answer ends its connection', async (t) => {
    const { running, url, path } = await startService(t, ', drainDelay: 5000');
    const clients = Array.from({ length: 60 }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (;;) {
        const { outcome, ends } = await post(url, path, agent);
        if (outcome !== 200 || ends) return [outcome, ends];
      }
    });
    await running.output(/^(?:.+\n){250}/);
    running.child.kill('SIGTERM');
    assert.deepEqual(
      await Promise.all(clients),
      Array.from({ length: 60 }, () => [200, true]),
    );
    assert.equal((await running.ended).code, 0);
  });

  for (const words of [[], ['--workers', '2']]) {
    it(`resets next to nobody who connects again and again until it is closed: start ${words.join(' ')}`, async (t) => {
      const { running, url, path } = await startService(t, '', words);
      const counts = new Map<number | string, number>();
      const clients = Array.from({ length: 40 }, async () => {
        for (;;) {
          const { outcome } = await post(url, path, new Agent());
          counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
          if (outcome === 'ECONNREFUSED') return;
        }
      });
      await running.output(/^(?:.+\n){250}/);
      running.child.kill('SIGTERM');
      await Promise.all(clients);
      const { 200: answered = 0, ECONNRESET: resets = 0, ECONNREFUSED: _, ...others } = Object.fromEntries(counts);
      assert.deepEqual(others, {});
      // A busy machine may take the process off its processor between its last look and the end of its port.
      assert.ok(resets <= Math.max(clients.length / 4, answered / 1000), `${resets} resets, ${answered} answers`);
      assert.equal((await running.ended).code, 0);
    });
  }

  it('has nothing asked of the upstream that is not answered, though a client pipelines on and on', async (t) => {
    const { running, upstream, url, path } = await startService(t);
    const held: (() => void)[] = [];
    upstream.on('/eth', (_req, res) => {
      const answer = () => void res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"price":1}');
      if (upstream.requests.length === 1) held.push(answer);
      else answer();
    });
    const request = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
    const client = openRaw(url);
    client.write(request);
    await upstream.untilRequested('/eth');
    running.child.kill('SIGTERM');
    await running.output(/stopping signal=SIGTERM/);
    for (let i = 0; i < 40; i++) {
      await client.sent(request);
      await setTimeout(10);
    }
    for (const answer of held) answer();
    const text = await client.closed;
    const answers = text.split('HTTP/1.1 200 OK').length - 1;
    assert.ok(answers < 41, 'it was sent more than it took');
    assert.deepEqual([upstream.requests.length, text.match(/Connection: close/g)?.length], [answers, 1]);
    assert.equal((await running.ended).code, 0);
  });

  it('answers for a while longer, and says that it wants no more requests (server.drainDelay)', async (t) => {
    const { running, url, path } = await startService(t, ', drainDelay: 60000');
    running.child.kill('SIGTERM');
    await running.output(/stopping signal=SIGTERM/);
    const ready = await fetch(`${url}/ready`);
    assert.deepEqual([ready.status, ready.headers.get('connection')], [503, 'close']);
    assert.equal((await post(url, path, new Agent())).outcome, 200);
    running.child.kill('SIGKILL');
  });

  it('sends an answer to its end, though its client takes it slowly', async (t) => {
    const { running, upstream, url, path } = await startService(t, ', drainDelay: 0');
    let answer = (): void => undefined;
    upstream.on('/eth', (_req, res) => {
      answer = () => void res.end('{"price":1}');
    });
    const client = openRaw(url);
    client.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`);
    await upstream.untilRequested('/eth');
    running.child.kill('SIGTERM');
    await running.output(/stopping signal=SIGTERM/);
    answer();
    const text = await client.closed;
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\nConnection: close\r\n[\s\S]*"signature":"0x[0-9a-f]{130}"\}$/);
    assert.equal((await running.ended).code, 0);
  });
});

describe('file descriptors', () => {
  const limited = async (t: TestContext, descriptors: number) => {
    const cwd = await folderWith(t, { 'c.yaml': configOf('http://127.0.0.1:9') });
    const command = `ulimit -n ${descriptors}; exec "${process.execPath}" "${PROGRAM}" start -c c.yaml`;
    return launch(t, 'sh', ['-c', command], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  };

  it('are left for upstreams by the limit of connections, and one address leaves some for others', async (t) => {
    const running = await limited(t, 512);
    const url = await urlOf(running);
    const silent = Array.from({ length: 700 }, () => openRaw(url));
    let open = silent.length;
    for (const { closed } of silent) void closed.then(() => open--);
    // A quarter of half of them.
    await running.output(/connections refused: server\.connections\.perAddress is reached limit=64\n/);
    await eventually(() => open <= 64);
    const other = new Agent({ localAddress: '127.0.0.2' } as object);
    const answer = await new Promise<number | undefined>((resolve, reject) => {
      httpRequest(`${url}/health`, { agent: other, localAddress: '127.0.0.2' }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    assert.equal(answer, 200);
    assert.equal(open, 64);
    for (const client of silent) client.destroy();
  });
});
