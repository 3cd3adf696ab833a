/** The compose file runs replicas that share their state. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { loadConfig } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';
import { folderWith, PACKAGE_ROOT, runCli } from '../cli/run.ts';
import { KEY } from '../cli/service-config.ts';
import { describeServers, freePort, startProgram } from '../state/redis-server.ts';
import { startProxy, withoutNginx } from '../support/nginx.ts';
import { startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { retried } from '../support/wait.ts';

const FOLDER = join(PACKAGE_ROOT, 'examples/deploy');
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const { services, networks, volumes, secrets } = parse(read('compose.yaml'));
const { 'signed-data-proxy': service, proxy, valkey } = services;

const PASSWORD = 'of-the-state';
const env = { PRICE_API_KEY: 'upstream-key', CLIENT_KEY: 'client-key-of-some-length', STATE_PASSWORD: PASSWORD };

/** The lines of a file that a comment of compose.yaml tells the reader to write. */
function told(begin: string): string[] {
  return [...read('compose.yaml').matchAll(new RegExp(`^# {3}(${begin}.*)$`, 'gm'))].map(([, line = '']) => line);
}

/** The command of the server, as words. */
const serverWords: readonly string[] = valkey.command
  .trimEnd()
  .split(' ')
  .map((word: string) => word.replace('""', ''));

describe('the config of the replicas', () => {
  it('is valid, warns of the proxies only, and leads to what compose.yaml runs', async () => {
    const file = join(FOLDER, 'config/config.yaml');
    const { config, endpoints, warnings } = await loadConfig({ file, env, builtins: definitions() });
    const paths = warnings.map(({ path }) => path);
    assert.deepEqual(paths, ['server.rateLimit.trustForwardedFor', 'settings.state.url']);
    const listed = endpoints.map(({ api, name }) => `${api}/${name}`);
    assert.deepEqual(listed, ['prices/eth-usd']);
    assert.deepEqual(config.server, { host: '0.0.0.0', port: 3000, rateLimit: { trustForwardedFor: 2 } });
    const state = { type: 'redis', url: 'redis://valkey:6379', username: 'signed-data-proxy', password: PASSWORD };
    assert.deepEqual(config.settings, { state });
    assert.match(read('Dockerfile'), /HEALTH_URL=http:\/\/127\.0\.0\.1:3000\/health\n(.*\n)*EXPOSE 3000\n/);
    assert.match(read('nginx.conf'), /server signed-data-proxy:3000 resolve/);
  });

  it('uses the variables that compose.yaml tells of', () => {
    const named = [...read('config/config.yaml').matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
    const written = told('[A-Z_]+=').map((line) => line.split('=')[0]);
    assert.deepEqual(written.toSorted(), [...named, 'SERVICE_MNEMONIC'].toSorted());
  });
});

describe('compose.yaml', () => {
  it('builds the Dockerfile, and mounts files and secrets that are there', () => {
    assert.equal(join(FOLDER, service.build.context), PACKAGE_ROOT);
    assert.ok(existsSync(join(PACKAGE_ROOT, service.build.dockerfile)));
    for (const [{ volumes: mounts }, target, file] of [
      [service, '/config', 'config/config.yaml'],
      [proxy, '/etc/nginx/nginx.conf', 'nginx.conf'],
    ] as const) {
      const [mount, ...more] = mounts;
      assert.deepEqual([mount.target, mount.read_only, more], [target, true, []]);
      assert.equal(join(mount.source, target === '/config' ? 'config.yaml' : ''), join(file));
      assert.ok(existsSync(join(FOLDER, file)));
    }
    assert.deepEqual([...service.secrets, ...valkey.secrets], Object.keys(secrets));
    assert.deepEqual(valkey.volumes, [`${Object.keys(volumes)[0]}:/data`]);
  });

  it('lets others reach the proxy alone, and the state nobody but the replicas', () => {
    assert.deepEqual([proxy.ports, service.ports, valkey.ports], [['127.0.0.1:3000:8080'], undefined, undefined]);
    assert.match(read('nginx.conf'), /listen 8080;/);
    assert.deepEqual([proxy.networks, valkey.networks], [['front'], ['state']]);
    assert.deepEqual([service.networks, networks.state], [['front', 'state'], { internal: true }]);
    assert.equal(service.deploy.replicas, 2);
    assert.deepEqual(Object.keys({ ...service.depends_on, ...proxy.depends_on }), ['valkey', 'signed-data-proxy']);
  });

  it('takes away what nobody needs', () => {
    for (const { read_only, cap_drop, security_opt, mem_limit, pids_limit, environment } of [service, proxy, valkey]) {
      assert.deepEqual([read_only, cap_drop, security_opt], [true, ['ALL'], ['no-new-privileges:true']]);
      assert.match(mem_limit, /^\d+m$/);
      assert.ok(pids_limit <= 128);
      assert.equal(environment, undefined);
    }
    assert.deepEqual([proxy.user, valkey.user], ['101:101', '999:999']);
  });

  it('gives the command line words that it knows, and time to stop', async (t) => {
    const cwd = await folderWith(t, { 'service.env': `SERVICE_PRIVATE_KEY=${KEY}\n` });
    const words = service.command.map((word: string) => word.replace('/run/secrets/', `${cwd}/`));
    const { code, stderr } = await runCli(t, words);
    assert.deepEqual([code, stderr], [1, 'error: /config/config.yaml: file not found\n']);
    assert.deepEqual([service.stop_grace_period, proxy.stop_grace_period], ['55s', '55s']);
  });
});

describeServers('what compose.yaml runs', (program) => {
  /** The server with the command and the users of compose.yaml. @returns its port. */
  async function startServer(t: TestContext): Promise<number> {
    const acl = told('user ').map((line) => line.replace('>STATE_PASSWORD', `>${PASSWORD}`));
    const folder = await folderWith(t, { 'valkey.acl': `${acl.join('\n')}\n` });
    const port = await freePort();
    const words = serverWords.slice(1).map((word) => word.replace('/run/secrets', folder));
    startProgram(t, program, [...words, '--dir', folder, '--port', `${port}`, '--bind', '127.0.0.1']);
    return port;
  }

  it('answers through the proxy, with a state that gives nothing to complain of', { skip: withoutNginx }, async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }) });
    const port = await startServer(t);
    const config = parse(await readFile(join(FOLDER, 'config/config.yaml'), 'utf8'));
    config.settings.state.url = config.settings.state.url.replace('valkey:6379', `127.0.0.1:${port}`);
    config.apis[0].url = upstream.url;
    config.server = { rateLimit: { ...config.server.rateLimit, max: 20, window: 600_000 } };
    const replicas = [await retried(() => startTestService(config, { env }))];
    replicas.push(await startTestService(config, { env }));
    const [one, other] = replicas;
    assert.ok(one !== undefined && other !== undefined);
    t.after(() => other.stop());
    for (const { logs } of replicas) {
      const warned = logs.filter(({ level }) => level === 'warn').map(({ message }) => message.split(':')[0]);
      assert.deepEqual(warned, ['server.rateLimit.trustForwardedFor']);
    }
    const { url } = await startProxy(
      t,
      replicas.map((replica) => replica.url),
    );
    const ask = (client: string) =>
      fetch(`${url}/endpoints/${one.ids['prices/eth-usd']}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Api-Key': env.CLIENT_KEY, 'X-Forwarded-For': client },
        body: '{}',
      });
    await retried(() => ask('203.0.113.1'));
    for (let index = 0; index < 9; index++) {
      const { data } = await verifyEncoded(await ask('203.0.113.1'), TEST_ADDRESS);
      assert.equal(BigInt(data), 7n * 10n ** 18n);
    }
    const asked = replicas.map(({ logs }) => logs.filter(({ fields }) => fields.requestId !== undefined).length);
    assert.ok(
      asked.every((count) => count > 0),
      `${asked}`,
    );
    // Clients are told apart by what the proxies say of them.
    await retried(async () => assert.equal((await ask('203.0.113.1')).status, 429));
    assert.equal((await ask('203.0.113.2')).status, 200);
    await one.stop();
    for (let index = 0; index < 6; index++) assert.equal((await ask('203.0.113.3')).status, 200);
  });
});
