/** The Dockerfile and the systemd unit run what there is, as an unprivileged user. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, launch, PACKAGE_ROOT, runCli } from '../cli/run.ts';
import { ADDRESS, configText, KEY } from '../cli/service-config.ts';
import { all, command, copyOf, entryPoint, healthCheck, isIgnored, only, variables } from '../support/dockerfile.ts';
import { upstreamFor } from '../support/upstream.ts';

const FOLDER = join(PACKAGE_ROOT, 'examples/deploy');
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const manifest: {
  scripts: Record<string, string>;
  engines: { node: string };
  devDependencies: Record<string, string>;
} = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));

describe('the Dockerfile', () => {
  it('copies what is there, and from stages that are there', () => {
    const stages = all('FROM').map((from) => / AS (\w+)$/.exec(from)?.[1]);
    assert.deepEqual(stages, ['build', 'dependencies', undefined]);
    for (const copy of all('COPY')) {
      const { stage, sources } = copyOf(copy);
      if (stage !== undefined) assert.ok(stages.includes(stage), copy);
      else for (const source of sources) assert.ok(existsSync(join(PACKAGE_ROOT, source)), source);
    }
    const copied = all('COPY').filter((copy) => copy.startsWith('--from='));
    assert.deepEqual(copied, ['--from=dependencies /build/node_modules ./node_modules', '--from=build /build/dist ./']);
  });

  it('runs npm ci, scripts that the package has, and adds the client of Redis in the version that is tested', () => {
    const flags = '--ignore-scripts --no-audit --no-fund';
    assert.deepEqual(all('RUN'), [
      `npm ci ${flags}`,
      'npm run build',
      `npm ci --omit=dev ${flags}`,
      `npm install --save-prod --omit=dev ${flags} ioredis@${manifest.devDependencies.ioredis}`,
    ]);
    assert.ok(Object.hasOwn(manifest.scripts, 'build'));
  });

  it('stands on the major version of Node.js that the package asks for', () => {
    const [, major] = /^NODE_IMAGE=node:(\d+)-slim$/.exec(only('ARG')) ?? [];
    assert.equal(major, /^>=(\d+)\./.exec(manifest.engines.node)?.[1]);
    for (const from of all('FROM')) assert.ok(from.startsWith('$' + '{NODE_IMAGE}'), from);
  });

  it('runs as an unprivileged user, ends with SIGTERM, and has no secret', () => {
    assert.equal(only('USER'), '1000:1000');
    assert.equal(only('STOPSIGNAL'), 'SIGTERM');
    assert.deepEqual(Object.keys(variables), [
      'NODE_ENV',
      'LOG_FORMAT',
      'TSX_DISABLE_CACHE',
      'SERVICE_WATCHDOG',
      'HEALTH_URL',
    ]);
  });

  it('leaves out secrets and what the build makes itself, and nothing that the build needs', () => {
    const { include }: { include: string[] } = JSON.parse(
      readFileSync(join(PACKAGE_ROOT, 'tools/scripts/tsconfig.build.json'), 'utf8'),
    );
    const files = [
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      'README.md',
      'LICENSE',
      'tools/scripts/build.ts',
    ];
    for (const path of [...include.map((folder) => join('tools/scripts', folder)), ...files])
      assert.ok(!isIgnored(path), path);
    const secrets = ['.env', '.env.local', 'service.env', 'deploy/service.env', 'deploy/.env', 'deploy/valkey.acl'];
    for (const path of [...secrets, '.git/config', 'node_modules/a', 'cli/node_modules/a', 'dist/cli', 'test/a.ts'])
      assert.ok(isIgnored(path), path);
  });

  const check = (t: TestContext, url: string) => {
    const [program = '', ...words] = healthCheck;
    return launch(t, program, words, { env: { HEALTH_URL: url } }).ended;
  };
  const health = (code: number) => ({ code, signal: null, stdout: '', stderr: '' });

  it('starts the service; the health check tells whether it runs, and SIGTERM ends it', async (t) => {
    const cwd = await folderWith(t, { 'config.yaml': configText() });
    const words = [...entryPoint, ...command].map((word) => word.replace('/config/', `${cwd}/`));
    const [program = '', script = '', ...rest] = words;
    const env = { ...variables, SERVICE_PRIVATE_KEY: KEY };
    const running = launch(t, program, [join(PACKAGE_ROOT, script), ...rest], { cwd, env });
    const [, url = ''] = await running.output(/"msg":"listening on (http:[^"]+)"/);
    assert.deepEqual(await check(t, `${url}/health`), health(0));
    running.child.kill(only('STOPSIGNAL') === 'SIGTERM' ? 'SIGTERM' : 'SIGKILL');
    const { code, signal, stdout } = await running.ended;
    assert.deepEqual([code, signal], [0, null]);
    assert.match(stdout, new RegExp(`"msg":"signer ${ADDRESS}"`));
    assert.deepEqual(await check(t, `${url}/health`), health(1));
  });

  it('the health check fails on an error, and on silence', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.json('/failing', { status: 'ok' }, 503);
    upstream.on('/silent', () => undefined);
    const [failing, silent] = await Promise.all([
      check(t, `${upstream.url}/failing`),
      check(t, `${upstream.url}/silent`),
    ]);
    assert.deepEqual([failing, silent], [health(1), health(1)]);
  });
});

describe('the systemd unit', () => {
  /** Every value of a key, in order. */
  const values = (key: string) =>
    read('signed-data-proxy.service')
      .split('\n')
      .filter((line) => line.startsWith(`${key}=`))
      .map((line) => line.slice(key.length + 1));

  it('starts the service with words that the command line knows', async (t) => {
    const [start = '', ...more] = values('ExecStart');
    assert.deepEqual(more, []);
    const [node, program, ...words] = start.split(' ');
    assert.deepEqual([node, program], ['/usr/bin/node', '/opt/signed-data-proxy/cli/bin.js']);
    const [credential = '', source] = values('LoadCredential')[0]?.split(':') ?? [];
    assert.equal(source, '/etc/signed-data-proxy/service.env');
    const cwd = await folderWith(t, { [credential]: `SERVICE_PRIVATE_KEY=${KEY}\n` });
    const { code, stderr } = await runCli(
      t,
      words.map((word) => word.replace('%d', cwd)),
    );
    assert.deepEqual([code, stderr], [1, 'error: /etc/signed-data-proxy/config.yaml: file not found\n']);
  });

  it('reloads with SIGHUP, and gives requests in flight their time', () => {
    assert.deepEqual(values('ExecReload'), ['/bin/kill -HUP $MAINPID']);
    assert.deepEqual(values('TimeoutStopSec'), ['55']);
    assert.deepEqual([values('Restart'), values('StartLimitBurst')], [['on-failure'], ['5']]);
    assert.deepEqual(values('RestartForceExitStatus'), ['SIGHUP']);
  });

  it('takes away what the service does not need, but not the compiler of V8', () => {
    const on = ['DynamicUser', 'NoNewPrivileges', 'PrivateTmp', 'PrivateDevices', 'ProtectHome', 'RestrictNamespaces'];
    for (const key of on) assert.deepEqual(values(key), ['yes'], key);
    assert.deepEqual(values('ProtectSystem'), ['strict']);
    assert.deepEqual([values('StateDirectory'), values('StateDirectoryMode')], [['signed-data-proxy'], ['0700']]);
    // Where commands look: test/cli/payments-socket.test.ts.
    assert.deepEqual([values('RuntimeDirectory'), values('RuntimeDirectoryMode')], [['signed-data-proxy'], ['0700']]);
    assert.deepEqual(values('CapabilityBoundingSet'), ['']);
    assert.deepEqual(values('MemoryDenyWriteExecute'), ['no']);
    assert.deepEqual(values('Environment'), ['NODE_ENV=production LOG_FORMAT=json SERVICE_WATCHDOG=30']);
  });
});
