/** An engine starts with a server that can be trusted with state. */

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { retried } from '../support/wait.ts';
import {
  certificateFor,
  type Directives,
  describeServers,
  errorOf,
  freePort,
  type Given,
  redisFor,
  started,
} from './redis-server.ts';

describeServers('the start of an engine', (program) => {
  const server = async (t: TestContext, directives: Directives = {}) => {
    return await redisFor(t, program, directives);
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
    assert.equal(await area.compareAndSet('k', undefined, '1', { ttl: 1000, keepLonger: true }), undefined);
    assert.equal(await area.get('k'), '1');
    assert.equal(await area.compareAndSet('k', '1', undefined), undefined);
    assert.equal((await area.takeTokens('k', { max: 2, window: 1000 })).granted, 1);
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
    const ofNode = 'is a node of a cluster: set urls in place of url';
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
      await running.command('CONFIG', 'SET', 'appendfsync', value);
      await running.command('CLIENT', 'KILL', 'TYPE', 'normal');
    };
    await change('always');
    await retried(() => assert.deepEqual(engine.doubts(), []));
    assert.deepEqual(logged, []);
    await change('everysec');
    const everysec = `settings.state: appendfsync of ${name} is everysec, so that a power loss may take the last second: set "appendfsync always" where that matters`;
    await retried(() => assert.deepEqual(logged, [everysec]));
    await change('no');
    await retried(() => assert.deepEqual(engine.doubts(), [no]));
  });

  it('looks again now and then, since its operator may do what it was told, or the opposite', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const running = await server(t, { 'maxmemory-policy': 'allkeys-lru' });
    const { engine, logged } = await started(t, { url: running.url });
    const doubt = `settings.state: maxmemory-policy of ${running.name} is allkeys-lru, so that it may drop what it keeps: set "maxmemory-policy noeviction"`;
    assert.deepEqual([engine.doubts(), logged], [[doubt], []]);
    for (const [policy, doubts] of [
      ['noeviction', []],
      ['allkeys-lru', [doubt]],
    ] as const) {
      await running.command('CONFIG', 'SET', 'maxmemory-policy', policy);
      t.mock.timers.tick(10_000);
      await retried(() => assert.deepEqual([engine.doubts(), logged], [doubts, doubts]));
    }
  });

  it('warns of replicas that a failover may lead to too early', async (t) => {
    const primary = await server(t);
    const replica = await server(t, { replicaof: `127.0.0.1 ${primary.port}` });
    await retried(async () => assert.match(String(await primary.command('INFO')), /connected_slaves:1/));
    const { logged } = await started(t, { url: primary.url });
    assert.deepEqual(logged, [
      `settings.state: min-replicas-to-write of ${primary.name} is 0, so that a failover may take what no replica has yet: set "min-replicas-to-write 1"`,
    ]);
    await primary.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    assert.deepEqual((await started(t, { url: primary.url })).logged, []);
    await replica.stop();
  });

  it('speaks TLS', async (t) => {
    const made = await certificateFor(t);
    if (made === undefined) return t.skip('openssl is not installed');
    const { cert, key, directives } = made;
    const tlsPort = await freePort();
    const { url: plain } = await server(t, { ...directives, 'tls-port': String(tlsPort) });
    const url = `rediss://127.0.0.1:${tlsPort}`;
    const own = { ca: cert, servername: 'redis.test' };
    const { engine } = await started(t, { url, tls: { ...own, cert, key } });
    assert.equal(await engine.area('a').compareAndSet('k', undefined, '1'), undefined);
    // As a variable of Docker has it.
    const inOneLine = { ca: cert?.replaceAll('\n', '\\n'), key: key?.replaceAll('\n', '\\n') };
    const also = await started(t, { url: url.replace('rediss', 'redis'), tls: { ...own, cert, ...inOneLine } });
    assert.equal(await also.engine.area('a').get('k'), '1');
    const reasonOf = async (given: Given) => (await errorOf(t, given))?.replace(/^.*127\.0\.0\.1:\d+ /, '');
    assert.equal(await reasonOf({ url }), 'cannot be reached: DEPTH_ZERO_SELF_SIGNED_CERT');
    assert.equal(await reasonOf({ url, tls: { ca: cert } }), 'cannot be reached: ERR_TLS_CERT_ALTNAME_INVALID');
    // The alert that says why may be overtaken by the end of the connection.
    const required = /^cannot be reached: (?:ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED|ECONNRESET|EPIPE)/;
    assert.match((await reasonOf({ url, tls: own })) ?? '', required);
    const more = 'if TLS is expected, write rediss://';
    const less = 'if no TLS is spoken, write redis:// and leave tls out';
    assert.equal(await reasonOf({ url: url.replace('rediss', 'redis') }), `cannot be reached: ECONNRESET; ${more}`);
    assert.equal(await reasonOf({ url: plain.replace('redis', 'rediss') }), `cannot be reached: ETIMEDOUT; ${less}`);
  });
});
