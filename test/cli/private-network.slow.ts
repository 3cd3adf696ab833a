/** Private authorities and proxies are used where the environment names them. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { certificatesFor, withoutOpenssl } from '../support/certificates.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { hostOf } from '../support/https.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';
import { folderWith, launchCli, type Running } from './run.ts';
import { ADDRESS, configText, endpointId, KEY, specifications } from './service-config.ts';
import { postTo, urlOf } from './started.ts';

/** An upstream whose certificate a private authority has made. */
async function startPrivate(t: TestContext) {
  const files = await certificatesFor(t, 'DNS:api.test', 'DNS:localhost');
  const server = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, (_, response) => {
    response.setHeader('content-type', 'application/json').end('{"price":7}');
  });
  const { port } = new URL(`https://${await hostOf(t, server)}`);
  return { ca: files.ca, port: Number(port) };
}

interface Given {
  readonly url: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly envFile?: string;
  readonly words?: readonly string[];
}

async function start(t: TestContext, { url, env = {}, envFile = '', words = [] }: Given) {
  const cwd = await folderWith(t, {
    'c.yaml': configText(url),
    'service.env': `SERVICE_PRIVATE_KEY=${KEY}\n${envFile}`,
  });
  const running = launchCli(t, ['start', '-c', 'c.yaml', '--env', 'service.env', ...words], { cwd, env });
  return { cwd, running };
}

async function ask(running: Running, url: string) {
  return postTo(await urlOf(running), endpointId(specifications(url).eth));
}

const stop = async ({ child, ended }: Running) => {
  child.kill('SIGTERM');
  return (await ended).stdout;
};

describe('an upstream of a private authority', { skip: withoutOpenssl }, () => {
  it('is trusted with NODE_EXTRA_CA_CERTS, by every worker', async (t) => {
    const { ca, port } = await startPrivate(t);
    const url = `https://localhost:${port}`;
    const { running } = await start(t, { url, env: { NODE_EXTRA_CA_CERTS: ca }, words: ['--workers', '2'] });
    await running.output(/2 workers are ready/);
    // Each connection goes to one of them.
    for (let i = 0; i < 8; i++) {
      const { data } = await verifyEncoded(await ask(running, url), ADDRESS);
      assert.equal(BigInt(data), 7n * 10n ** 18n);
    }
    await stop(running);
  });

  it('is not trusted without, and the log says so', async (t) => {
    const { ca, port } = await startPrivate(t);
    const url = `https://localhost:${port}`;
    const { running } = await start(t, { url, envFile: `NODE_EXTRA_CA_CERTS=${ca}\n` });
    assert.equal((await ask(running, url)).status, 502);
    const log = await stop(running);
    assert.match(log, /WARN NODE_EXTRA_CA_CERTS counts only as a variable of the process, not in a file\n/);
    assert.ok(
      log.includes(
        `GET ${url} failed: its certificate is of no authority that this process trusts (UNABLE_TO_VERIFY_LEAF_SIGNATURE)`,
      ),
      log,
    );
  });
});

describe('a proxy between the service and its upstreams', { skip: withoutOpenssl }, () => {
  it('is used by every worker, as the file of --env says; its password is in no log', async (t) => {
    const { ca, port } = await startPrivate(t);
    const proxy = await startHttpProxy(t, port);
    const envFile = `HTTPS_PROXY=${proxy.url.replace('//', '//user:secret-of-the-proxy@')}\n`;
    const env = { NODE_EXTRA_CA_CERTS: ca, LOG_LEVEL: 'debug' };
    const { running } = await start(t, { url: 'https://api.test', env, envFile, words: ['--workers', '2'] });
    await running.output(/2 workers are ready/);
    for (let i = 0; i < 4; i++) await verifyEncoded(await ask(running, 'https://api.test'), ADDRESS);
    const log = await stop(running);
    assert.deepEqual([...new Set(proxy.asked)], ['CONNECT api.test:443']);
    assert.deepEqual([...new Set(proxy.credentials)], [`Basic ${btoa('user:secret-of-the-proxy')}`]);
    assert.match(log, new RegExp(`INFO https:// is asked for through the proxy ${proxy.url} \\(HTTPS_PROXY\\)`));
    assert.ok(!log.includes('secret-of-the-proxy') && !log.includes(btoa('user:secret-of-the-proxy')), log);
  });

  it('may change with a reload; one that is none leaves the config before in force', async (t) => {
    const { ca, port } = await startPrivate(t);
    const [one, two] = [await startHttpProxy(t, port), await startHttpProxy(t, port)];
    const env = { NODE_EXTRA_CA_CERTS: ca };
    const { cwd, running } = await start(t, { url: 'https://api.test', env, envFile: `https_proxy=${one.url}\n` });
    await verifyEncoded(await ask(running, 'https://api.test'), ADDRESS);
    const reload = async (line: string, told: RegExp) => {
      await writeFile(join(cwd, 'service.env'), `SERVICE_PRIVATE_KEY=${KEY}\n${line}`);
      running.child.kill('SIGHUP');
      await running.output(told);
      return verifyEncoded(await ask(running, 'https://api.test'), ADDRESS);
    };
    await reload(`https_proxy=${two.url}\n`, /config reloaded/);
    assert.deepEqual([one.asked.length, two.asked.length], [1, 1]);
    await reload(
      'https_proxy=socks5://user:secret@a.test\n',
      /ERROR https_proxy: must be the URL of an HTTP proxy, such as \S+\n.*ERROR the config was not reloaded/s,
    );
    assert.deepEqual([one.asked.length, new Set(two.asked).size], [1, 1]);
    await eventually(() => one.sockets.size === 0);
    assert.ok(!(await stop(running)).includes('secret'));
  });

  it('stops the start where it is none', async (t) => {
    for (const words of [[], ['--workers', '2']]) {
      const { running } = await start(t, {
        url: 'https://api.test',
        env: { HTTP_PROXY: 'socks5://user:secret@a.test' },
        words,
      });
      const { code, stderr } = await running.ended;
      assert.deepEqual(
        [code, stderr],
        [1, 'error: HTTP_PROXY: must be the URL of an HTTP proxy, such as http://proxy.example:3128\n'],
      );
    }
  });
});
