/** The examples of proxies pass answers, events and client addresses on, and time out after the service. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type RequestOptions, request } from 'node:https';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { folderWith, PACKAGE_ROOT } from '../cli/run.ts';
import { freePort, startProgram } from '../state/redis-server.ts';
import { type Certificates, certificatesFor, withoutOpenssl } from '../support/certificates.ts';
import { startNginx, withoutNginx } from '../support/nginx.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventOf, retried } from '../support/wait.ts';

const NAME = 'data.example.com';
const read = (name: string) => readFileSync(join(PACKAGE_ROOT, 'examples/deploy', name), 'utf8');

/** Starts what ends TLS, with its example for a name, before a port of this machine. @returns its own port, and whom to trust. */
type Start = (t: TestContext, to: number, change?: (config: string) => string) => Promise<{ port: number; ca: string }>;

const edge = async (t: TestContext): Promise<{ port: number; files: Certificates }> => {
  return { port: await freePort(), files: await certificatesFor(t, `DNS:${NAME}`) };
};

const nginx: Start = async (t, to, change = (config) => config) => {
  const { port, files } = await edge(t);
  const config = read('nginx-tls.conf')
    .replace(/^user .*\n/m, '')
    .replace('/run/nginx.pid', '/tmp/nginx.pid')
    .replace('/var/log/nginx/error.log', 'stderr')
    .replace(/^ *listen \[::\].*\n/gm, '')
    .replace('listen 80;', `listen 127.0.0.1:${await freePort()};`)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace(/\/etc\/letsencrypt\/\S*fullchain.pem/, files.cert)
    .replace(/\/etc\/letsencrypt\/\S*privkey.pem/, files.key)
    .replace('server 127.0.0.1:3000', `server 127.0.0.1:${to}`)
    .replace(
      'http {',
      'http { client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/f; uwsgi_temp_path /tmp/u; scgi_temp_path /tmp/s;',
    );
  await startNginx(t, change(config));
  return { port, ca: readFileSync(files.ca, 'utf8') };
};

const caddy: Start = async (t, to, change = (config) => config) => {
  const { port, files } = await edge(t);
  const config = read('Caddyfile')
    .replace('\n{\n', '\n{\nadmin off\nauto_https disable_redirects\n')
    .replace(`\n${NAME} {`, `\nhttps://${NAME}:${port} {\ntls ${files.cert} ${files.key}\nbind 127.0.0.1\n`)
    .replace('reverse_proxy 127.0.0.1:3000', `reverse_proxy 127.0.0.1:${to}`);
  const folder = await folderWith(t);
  const file = join(folder, 'Caddyfile');
  await writeFile(file, change(config));
  startProgram(t, 'env', [`HOME=${folder}`, 'caddy', 'run', '--adapter', 'caddyfile', '--config', file]);
  return { port, ca: readFileSync(files.ca, 'utf8') };
};

const withoutCaddy = spawnSync('caddy', ['version']).status === 0 ? false : 'caddy is not installed';

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** Asks over TLS, whose certificate is checked, from an address of this machine. */
function ask(
  { port, ca }: { port: number; ca: string },
  path: string,
  options: RequestOptions & { body?: string } = {},
): Promise<Answer> {
  const { body = '{}', ...more } = options;
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      port,
      ca,
      servername: NAME,
      path,
      method: 'POST',
      agent: false,
      ...more,
    });
    asked.setHeader('Host', NAME);
    asked.setHeader('Content-Type', 'application/json');
    asked.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: text }));
      response.on('error', reject);
    });
    asked.end(body);
  });
}

/** The settings of the service that the comment on top of an example tells of. */
function serverOf(name: string): Readonly<Record<string, unknown>> {
  const [, block = ''] = /^# With it belongs[^\n]*\n((?:# {3}[^\n]*\n)+)/m.exec(read(name)) ?? [];
  return parse(block.replace(/^# {3}/gm, '')).server;
}

const endpoint = { encoding: { type: 'int256', path: '$.price' } };

/** The service with the settings of an example, and an upstream. */
async function startBehind(t: TestContext, name: string, limit: number, timeout = 10_000) {
  const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }) });
  const endpoints = [
    { ...endpoint, name: 'price', path: '/price' },
    { ...endpoint, name: 'event', path: '/event', mode: 'stream' },
  ];
  const { rateLimit, ...server } = serverOf(name);
  const service = await serviceFor(t, {
    server: { ...server, port: 0, rateLimit: { ...Object(rateLimit), max: limit, window: 600_000 } },
    apis: [{ name: 'api', url: upstream.url, auth: { type: 'free' }, timeout, endpoints }],
  });
  return { service, upstream, port: Number(new URL(service.url).port) };
}

for (const [name, file, start, skip] of [
  ['nginx', 'nginx-tls.conf', nginx, withoutNginx || withoutOpenssl],
  ['Caddy', 'Caddyfile', caddy, withoutCaddy || withoutOpenssl],
] as const) {
  describe(`${name} of examples/deploy, which ends TLS`, { skip }, () => {
    /** Once it listens. */
    const begin: Start = async (...given) => {
      const front = await start(...given);
      await retried(() => ask(front, '/health', { method: 'GET' }));
      return front;
    };

    it('tells the rate limit the address of a client, whatever that writes itself', async (t) => {
      const { service, port } = await startBehind(t, file, 3);
      const front = await begin(t, port);
      const path = `/endpoints/${service.ids['api/price']}`;
      const statuses = [];
      for (const [localAddress, forged] of [
        ...['203.0.113.1', '203.0.113.2, 198.51.100.1', '203.0.113.3', '127.0.0.3'].map((text) => ['127.0.0.2', text]),
        ['127.0.0.3', '127.0.0.2'],
      ]) {
        const headers = { 'X-Forwarded-For': forged };
        statuses.push((await ask(front, path, { localAddress, headers })).status);
      }
      assert.deepEqual(statuses, [200, 200, 200, 429, 200]);
    });

    it('passes on answers, events and headers, and the text of a body that is too large', async (t) => {
      const { service, port } = await startBehind(t, file, 100);
      const front = await begin(t, port);
      const event = await ask(front, `/endpoints/${service.ids['api/event']}`);
      assert.deepEqual([event.status, event.headers['content-type']], [200, 'text/event-stream']);
      assert.match(event.body, /^data: \{"done":true,.*\}\n\n$/);
      assert.match(String(event.headers['x-request-id']), /./);
      assert.match(String(event.headers['strict-transport-security']), /^max-age=/);
      const path = `/endpoints/${service.ids['api/price']}`;
      const bodyOf = (length: number) =>
        JSON.stringify({ parameters: {}, x: '' }).replace('""', `"${'x'.repeat(length - 24)}"`);
      assert.equal(bodyOf(65_536).length, 65_536);
      const [fits, large] = [
        await ask(front, path, { body: bodyOf(65_536) }),
        await ask(front, path, { body: bodyOf(65_537) }),
      ];
      assert.notEqual(fits.status, 413);
      assert.deepEqual([large.status, large.body], [413, '{"error":"Request body too large"}']);
      assert.equal(large.headers['content-type'], 'application/json');
    });

    it('buffers nothing: what comes is seen before the answer has ended', async (t) => {
      let goOn = () => {};
      const seen = new Promise<void>((resolve) => (goOn = resolve));
      const upstream = await upstreamFor(t, {
        '/events': async (_, response) => {
          response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          response.write('data: 1\n\n');
          await seen;
          response.end('data: 2\n\n');
        },
      });
      const front = await begin(t, Number(new URL(upstream.url).port));
      const asked = request({
        host: '127.0.0.1',
        ...front,
        servername: NAME,
        path: '/events',
        headers: { Host: NAME },
      }).end();
      const [response] = await eventOf(asked, 'response');
      const [first] = await eventOf(response, 'data');
      assert.equal(String(first), 'data: 1\n\n');
      goOn();
      const [second] = await eventOf(response, 'data');
      assert.equal(String(second), 'data: 2\n\n');
    });

    it('waits for an upstream that takes longer than anything but an answer may', async (t) => {
      const { service, upstream, port } = await startBehind(t, file, 100);
      const front = await begin(t, port);
      upstream.on('/price', (_, response) => void setTimeout(() => response.end('{"price":8}'), 1500));
      assert.equal((await ask(front, `/endpoints/${service.ids['api/price']}`)).status, 200);
    });

    it('says in the form of the service that it cannot be reached', async (t) => {
      const front = await start(t, await freePort());
      const { status, headers, body } = await retried(() => ask(front, '/endpoints'));
      assert.deepEqual([status, body, headers['retry-after']], [503, '{"error":"Service Unavailable"}', '2']);
      assert.equal(headers['content-type'], 'application/json');
    });
  });
}

describe('the times of the proxies', () => {
  it('fit those of the service', () => {
    for (const name of ['nginx.conf', 'nginx-tls.conf']) {
      const seconds = (key: string) => Number(new RegExp(`\\b${key} (\\d+)s;`).exec(read(name))?.[1]);
      // Twice the `timeout` of an API, 10 s by default, and a proof of 30 s; of idle connections nginx keeps those to servers 60 s.
      assert.ok(seconds('proxy_read_timeout') > 2 * 10 + 30, name);
      assert.ok(!/keepalive_timeout/.test(/upstream.*?\n {2}\}/s.exec(read(name))?.[0] ?? ''), name);
    }
    assert.match(read('Caddyfile'), /keepalive 60s/);
    assert.match(read('Caddyfile'), /response_header_timeout 75s/);
    for (const name of ['nginx-tls.conf', 'Caddyfile'])
      assert.deepEqual(serverOf(name), { host: '127.0.0.1', port: 3000, rateLimit: { trustForwardedFor: 1 } });
  });

  it('are what `caddy validate` takes', { skip: withoutCaddy }, async (t) => {
    const folder = await folderWith(t, { Caddyfile: read('Caddyfile') });
    const words = ['caddy', 'validate', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')];
    const { status, stdout, stderr } = spawnSync('env', [`HOME=${folder}`, ...words], { encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout + stderr, /Valid configuration/);
    assert.ok(!/not formatted/.test(stderr), stderr);
  });
});
