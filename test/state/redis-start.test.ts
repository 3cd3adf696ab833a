import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { folder } from '../config/support.ts';
import { errorsOf } from '../support/config.ts';
import { type Directives, describeServers, eventually, freePort, openEngine, RedisServer } from './redis-server.ts';

type Given = Readonly<Record<string, unknown>>;

/** What `start` says, and what the log says; the engine is closed in the end. */
async function started(t: TestContext, config: Given) {
  const { engine, logged } = openEngine(config);
  t.after(() => engine.close());
  try {
    await engine.start();
    return { engine, logged };
  } catch (error) {
    return { engine, logged, error: String(error) };
  }
}

async function errorOf(t: TestContext, config: Given): Promise<string | undefined> {
  return (await started(t, config)).error;
}

/** The port of something that listens, but is no such server. */
async function listening(t: TestContext, handle: (socket: Socket) => void): Promise<number> {
  const port = await freePort();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  t.after(() => server.close());
  return port;
}

/** Answers each command as the function says. */
const answering = (answer: (name: string) => string) => (socket: Socket) =>
  socket.on('data', (data) => {
    for (const [, name = ''] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g))
      socket.write(answer(name.toLowerCase()));
  });

const bulk = (lines: readonly string[]) => {
  const text = lines.map((line) => `${line}\r\n`).join('');
  return `$${text.length}\r\n${text}\r\n`;
};

describe('the start of an engine whose server is none', () => {
  it('says that nothing is there', async (t) => {
    const port = await freePort();
    const message = `Error: settings.state: redis at 127.0.0.1:${port} cannot be reached: ECONNREFUSED`;
    assert.equal(await errorOf(t, { url: `redis://127.0.0.1:${port}` }), message);
    const named = await errorOf(t, { url: `redis://u:geheim@localhost:${port}` });
    assert.equal(named, `Error: settings.state: redis at localhost:${port} cannot be reached: ECONNREFUSED`);
    const six = await errorOf(t, { url: `redis://[::1]:${port}` });
    assert.match(
      six ?? '',
      /^Error: settings\.state: redis at \[::1\]:\d+ cannot be reached: (?:ECONNREFUSED|EADDRNOTAVAIL)$/,
    );
  });

  it('says that the name is unknown, and takes port 6379 by itself', async (t) => {
    assert.match(
      (await errorOf(t, { url: 'redis://redis.invalid' })) ?? '',
      /^Error: settings\.state: redis at redis\.invalid:6379 cannot be reached: (?:ENOTFOUND|EAI_AGAIN)$/,
    );
  });

  const strangers: readonly [string, (socket: Socket) => void, string][] = [
    ['talks in another way', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), 'is no Redis and no Valkey'],
    ['says nothing', () => undefined, 'does not answer'],
    [
      'ends the connection',
      (socket) => socket.destroy(),
      'closed the connection; if it expects TLS, url begins with rediss://',
    ],
    [
      'repeats the password',
      answering((name) => `-ERR unknown command '${name}', with args beginning with: 'geheim'\r\n`),
      "answered: ERR unknown command 'auth'",
    ],
    ['repeats the password otherwise', answering(() => '-ERR geheim? No.\r\n'), 'answered: ERR ***? No.'],
    ['answers, but is something else', answering(() => bulk(['a:b'])), 'is no Redis and no Valkey'],
    [
      'is too old',
      answering(() => bulk(['redis_version:6.0.16', 'role:master'])),
      'has version 6.0.16: Redis 6.2 or later, or Valkey, is needed',
    ],
    [
      'is a Sentinel',
      answering(() => bulk(['redis_version:7.0.15', 'redis_mode:sentinel'])),
      'is a Sentinel: url must lead to the primary that it watches',
    ],
    [
      'is still loading',
      answering(() => bulk(['redis_version:7.0.15', 'role:master', 'loading:1'])),
      'is still loading its data: try again once it has',
    ],
  ];
  for (const [what, handle, reason] of strangers) {
    it(`says so when it ${what}`, async (t) => {
      const port = await listening(t, handle);
      const message = await errorOf(t, { url: `redis://:geheim@127.0.0.1:${port}` });
      assert.equal(message, `Error: settings.state: redis at 127.0.0.1:${port} ${reason}`);
    });
  }

  it('takes a Valkey, whatever Redis it says to be', async (t) => {
    const info = ['redis_version:5.0.0', 'valkey_version:9.0.0', 'role:master', 'aof_enabled:1', 'connected_slaves:0'];
    const port = await listening(
      t,
      answering((name) => (name === 'info' ? bulk(info) : '*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n')),
    );
    const { error, engine, logged } = await started(t, { url: `redis://127.0.0.1:${port}` });
    assert.deepEqual([error, engine.doubts(), logged], [undefined, [], []]);
  });
});

describe('an engine without its library', () => {
  it('says how to install it', () => {
    const hook = `export async function resolve(name, context, next) {
      if (name === 'ioredis') throw Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(name, context);
    }`;
    const url = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
    const register = `import { register } from 'node:module'; register(${JSON.stringify(url(hook))});`;
    const client = new URL('../../builtins/state-redis/client.ts', import.meta.url).href;
    const program = `import { createClient } from ${JSON.stringify(client)};
      await createClient({}, () => null).catch((error) => console.log(error.message));`;
    const words = ['--import', 'tsx', '--import', url(register), '--input-type=module', '-e', program];
    const cwd = fileURLToPath(new URL('../..', import.meta.url));
    const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', cwd, timeout: 30_000 });
    assert.equal(stdout, 'settings.state needs a package that is not installed: npm install ioredis@6\n', stderr);
  });
});

describe('the config of an engine', () => {
  const apis = [{ name: 'a', url: 'https://a.example', auth: { type: 'free' }, endpoints: [{ name: 'e', path: '/' }] }];
  const pem =
    'expected: Certificates of those who sign its certificate, PEM; default those of Node.js (pattern -----BEGIN )';
  const form =
    'has the wrong form, expected: redis://host:port/database, or rediss:// for TLS (pattern ^rediss?://[^\\s/?#]+(?:/[0-9]{0,5})?$)';
  const cases: readonly [Given, ...string[]][] = [
    [{ url: 'redis://h' }],
    [{ url: 'rediss://u:p%40@[::1]:1/2', prefix: '', tls: true, username: 'u', password: 'p' }],
    [{ url: 'redis://h/', tls: {} }],
    [{}, 'url: required key is missing'],
    [{ url: 'redis://h', prefx: 'a' }, 'prefx: unknown key, did you mean "prefix"?'],
    [{ url: 'http://u:geheim@h' }, `url: ${form}`],
    [{ url: 'redis://u:ge#heim@h' }, `url: ${form}`],
    [{ url: 'redis://h?db=1' }, `url: ${form}`],
    [{ url: 'redis://u:geheim@h:99999' }, 'url: is no valid URL'],
    [{ url: 'redis://u:ge%heim@h' }, 'url: is no valid URL'],
    [{ url: 'rediss://h', tls: false }, 'tls: expected true or a mapping, found a boolean'],
    [{ url: 'rediss://h', tls: { cat: 1 } }, 'tls.cat: unknown key, did you mean "ca"?'],
    [{ url: 'rediss://h', tls: { ca: '/etc/ca.pem' } }, `tls.ca: has the wrong form, ${pem}`],
    [
      { url: 'rediss://h', tls: { cert: '-----BEGIN CERTIFICATE-----' } },
      'tls: cannot be used: error:04800066:PEM routines::bad end line',
    ],
  ];
  for (const [given, ...expected] of cases) {
    it(`${JSON.stringify(given)}: ${expected.length === 0 ? 'can be used' : expected}`, async () => {
      const errors = await errorsOf({ settings: { state: { type: 'redis', ...given } }, apis });
      assert.deepEqual(
        errors,
        expected.map((line) => `settings.state.${line}`),
      );
    });
  }
});

describeServers('the start of an engine', (program) => {
  const server = async (t: TestContext, directives: Directives = {}) => {
    const running = await RedisServer.start(program, directives);
    t.after(() => running.stop());
    return running;
  };

  it('takes a password from the URL or beside it, and says which is wrong', async (t) => {
    const { url, name } = await server(t, { requirepass: 'ge:h@im', user: 'app on >pass ~* +@all' });
    const at = (credentials: string) => url.replace('//', `//${credentials}@`);
    for (const [given, reason] of [
      [{ url: at(':ge%3Ah%40im') }],
      [{ url, password: 'ge:h@im' }],
      [{ url: at('x:y'), username: 'app', password: 'pass' }],
      [{ url: at('app:pass') }],
      [{ url }, 'needs a password: set settings.state.password'],
      [{ url: `${url}/3` }, 'needs a password: set settings.state.password'],
      [{ url: at(':wrong') }],
      [{ url: `${url}/3`, password: 'wrong' }],
      [{ url, username: 'nobody', password: 'pass' }],
    ] as const) {
      const isWrong = /wrong|nobody/.test(JSON.stringify(given));
      const refused = 'refuses settings.state.username or settings.state.password';
      const expected = isWrong ? refused : reason;
      const message = expected === undefined ? undefined : `Error: settings.state: ${name} ${expected}`;
      assert.equal(await errorOf(t, given), message);
    }
  });

  it('needs few rights, and says which one is missing', async (t) => {
    const few = '+get +set +del +pttl +time +eval +evalsha +info';
    const { url, name } = await server(t, { user: `app on >pass ~sdp:* ${few}` });
    const { engine, logged, error } = await started(t, { url, username: 'app', password: 'pass' });
    assert.equal(error, undefined);
    assert.deepEqual(engine.doubts(), []);
    assert.deepEqual(logged, [
      `settings.state: appendfsync of ${name} cannot be read: allow its user CONFIG GET, or make sure of "appendfsync always"`,
    ]);
    const area = engine.area('a');
    assert.equal(await area.swap('k', undefined, '1', { ttl: 1000, keepLonger: true }), undefined);
    assert.equal(await area.get('k'), '1');
    assert.equal(await area.swap('k', '1', undefined), undefined);
    assert.equal((await area.take('k', { max: 2, window: 1000 })).granted, 1);
    assert.match(
      (await errorOf(t, { url: `${url}/1`, username: 'app', password: 'pass' })) ?? '',
      /^Error: settings\.state: redis at \S+ does not allow its user what is needed: NOPERM .*'select'/,
    );
  });

  it('refuses what is no primary of its own', async (t) => {
    const replica = await server(t, { replicaof: '127.0.0.1 1' });
    const ofReplica = `Error: settings.state: ${replica.name} is a replica: url must lead to the primary`;
    assert.equal(await errorOf(t, { url: replica.url }), ofReplica);
    const node = await server(t, { 'cluster-enabled': 'yes' });
    const ofNode =
      'is a node of a cluster: one primary without cluster mode is needed, which may have replicas and Sentinels';
    assert.equal(await errorOf(t, { url: node.url }), `Error: settings.state: ${node.name} ${ofNode}`);
    const few = await server(t, { databases: '2' });
    const ofFew = `Error: settings.state: ${few.name} has no database 7`;
    assert.equal(await errorOf(t, { url: `${few.url}/7` }), ofFew);
  });

  it('doubts a server that may lose what it has acknowledged', async (t) => {
    const { url, name } = await server(t, { 'maxmemory-policy': 'volatile-lru', appendonly: 'no' });
    const { engine, logged } = await started(t, { url });
    assert.deepEqual(engine.doubts(), [
      `settings.state: maxmemory-policy of ${name} is volatile-lru, so that it may drop what it keeps: set "maxmemory-policy noeviction"`,
      `settings.state: appendonly of ${name} is off, so that a restart loses what was written last: set "appendonly yes" and "appendfsync always"`,
    ]);
    assert.deepEqual(logged, []);
  });

  it('looks again at each connection', async (t) => {
    const running = await server(t, { appendfsync: 'no' });
    const { name } = running;
    const { engine, logged } = await started(t, { url: running.url });
    const no = `settings.state: appendfsync of ${name} is no, so that a power loss takes what was written last: set "appendfsync always"`;
    assert.deepEqual(engine.doubts(), [no]);
    const change = async (value: string) => {
      await running.command(['CONFIG', 'SET', 'appendfsync', value]);
      await running.command(['CLIENT', 'KILL', 'TYPE', 'normal']);
    };
    await change('always');
    await eventually(() => assert.deepEqual(engine.doubts(), []));
    assert.deepEqual(logged, []);
    await change('everysec');
    const everysec = `settings.state: appendfsync of ${name} is everysec, so that a power loss may take the last second: set "appendfsync always" where that matters`;
    await eventually(() => assert.deepEqual(logged, [everysec]));
    await change('no');
    await eventually(() => assert.deepEqual(engine.doubts(), [no]));
  });

  it('warns of replicas that a failover may lead to too early', async (t) => {
    const primary = await server(t);
    const replica = await server(t, { replicaof: `127.0.0.1 ${primary.port}` });
    await eventually(async () => assert.match(String(await primary.command(['INFO'])), /connected_slaves:1/));
    const { logged } = await started(t, { url: primary.url });
    assert.deepEqual(logged, [
      `settings.state: min-replicas-to-write of ${primary.name} is 0, so that a failover may take what no replica has yet: set "min-replicas-to-write 1"`,
    ]);
    await primary.command(['CONFIG', 'SET', 'min-replicas-to-write', '1']);
    assert.deepEqual((await started(t, { url: primary.url })).logged, []);
    await replica.stop();
  });

  it('speaks TLS', async (t) => {
    const files = await folder(t);
    const [certFile, keyFile] = [join(files, 'cert.pem'), join(files, 'key.pem')];
    const made = spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...['-subj', '/CN=redis.test', '-addext', 'subjectAltName=DNS:redis.test', '-keyout', keyFile, '-out', certFile],
    ]);
    if (made.status !== 0) return t.skip('openssl is not installed');
    const [cert, key] = [certFile, keyFile].map((file) => readFileSync(file, 'utf8'));
    const tlsPort = await freePort();
    const directives = { 'tls-cert-file': certFile, 'tls-key-file': keyFile, 'tls-ca-cert-file': certFile };
    const { url: plain } = await server(t, { ...directives, 'tls-port': String(tlsPort) });
    const url = `rediss://127.0.0.1:${tlsPort}`;
    const own = { ca: cert, servername: 'redis.test' };
    const { engine } = await started(t, { url, tls: { ...own, cert, key } });
    assert.equal(await engine.area('a').swap('k', undefined, '1'), undefined);
    const also = await started(t, { url: url.replace('rediss', 'redis'), tls: { ...own, cert, key } });
    assert.equal(await also.engine.area('a').get('k'), '1');
    const reasonOf = async (given: Given) => (await errorOf(t, given))?.replace(/^.*127\.0\.0\.1:\d+ /, '');
    assert.equal(await reasonOf({ url }), 'cannot be reached: DEPTH_ZERO_SELF_SIGNED_CERT');
    assert.equal(await reasonOf({ url, tls: { ca: cert } }), 'cannot be reached: ERR_TLS_CERT_ALTNAME_INVALID');
    // The alert that says why may be overtaken by the end of the connection.
    const required = /^cannot be reached: (?:ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED|ECONNRESET|EPIPE)/;
    assert.match((await reasonOf({ url, tls: own })) ?? '', required);
    const more = 'if it expects TLS, url begins with rediss://';
    const less = 'if it speaks no TLS, url begins with redis:// and tls is left out';
    assert.equal(await reasonOf({ url: url.replace('rediss', 'redis') }), `cannot be reached: ECONNRESET; ${more}`);
    assert.equal(await reasonOf({ url: plain.replace('redis', 'rediss') }), `cannot be reached: ETIMEDOUT; ${less}`);
  });
});
