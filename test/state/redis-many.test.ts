/** State in a Cluster, or behind Sentinels: the contract of engines, and what the start says. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { it } from 'node:test';
import { type Lifetime, suite } from '../support/lifetime.ts';
import { retried } from '../support/wait.ts';
import { contract } from './contract.ts';
import { clusterFor, PRIMARY, startSentinel } from './redis-many.ts';
import { certificateFor, describeServers, errorOf, freePort, openEngine, redisFor, started } from './redis-server.ts';

describeServers('state in a cluster', (program) => {
  contract(async () => {
    const ends: (() => Promise<void>)[] = [];
    const lifetime: Lifetime = { after: (end) => void ends.push(end) };
    const servers = await clusterFor(lifetime, program, {}, 0);
    const { engine } = openEngine({ urls: servers.map(({ url }) => url) });
    await engine.start();
    return {
      area: () => engine.area(randomUUID()),
      close: async () => {
        await engine.close();
        for (const end of ends) await end();
      },
    };
  });
});

/** All that a user of a cluster needs. */
const FEW = '+get +set +del +pttl +time +eval +evalsha +info +config|get +cluster|slots +asking';

describeServers('the start with a cluster', async (program) => {
  const servers = await clusterFor(suite, program, { user: `app on >geheim ~sdp:* ${FEW}` }, 0);
  const [first, , last] = servers;
  assert.ok(first && last);

  it('finds all primaries by one, needs few rights, and names the one that may lose what it has acknowledged', async (t) => {
    const urls = [first.url.replace('//', '//app:geheim@')];
    await last.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru', 'appendfsync', 'everysec');
    const { engine, logged, error } = await started(t, { urls });
    assert.equal(error, undefined);
    assert.deepEqual(engine.doubts(), [
      `settings.state: maxmemory-policy of ${last.name} is allkeys-lru, so that it may drop what it keeps: set "maxmemory-policy noeviction"`,
    ]);
    assert.deepEqual(logged, [
      `settings.state: appendfsync of ${last.name} is everysec, so that a power loss may take the last second: set "appendfsync always" where that matters`,
    ]);
    const area = engine.area('a');
    const keys = Array.from({ length: 50 }, (_, index) => `${index}`);
    for (const key of keys) assert.equal(await area.compareAndSet(key, undefined, key, { ttl: 60_000 }), undefined);
    for (const key of keys) assert.equal(await area.get(key), key);
  });

  it('says what is wrong', async (t) => {
    const [port, alone] = [await freePort(), await redisFor(t, program)];
    const nobody = await redisFor(t, program, { 'cluster-enabled': 'yes', 'cluster-port': `${await freePort()}` });
    const refused = 'refuses settings.state.username or settings.state.password';
    for (const [config, reason] of [
      [{ urls: [`redis://127.0.0.1:${port}`] }, `redis at 127.0.0.1:${port} cannot be reached: ECONNREFUSED`],
      [{ urls: [first.url], username: 'app', password: 'wrong' }, `${first.name} ${refused}`],
      [{ urls: [alone.url] }, `${alone.name} is no node of a cluster: set url in place of urls`],
      [{ urls: [nobody.url] }, `${nobody.name} is no cluster: no node keeps keys`],
      [{ url: first.url }, `${first.name} is a node of a cluster: set urls in place of url`],
    ] as const)
      assert.equal(await errorOf(t, config), `Error: settings.state: ${reason}`);
  });
});

describeServers('the start with Sentinels', (program) => {
  it('names the primary that may lose what it has acknowledged', async (t) => {
    const primary = await redisFor(t, program, { 'maxmemory-policy': 'allkeys-lru' });
    const port = await startSentinel(t, program, primary.port);
    // One that is away costs a look at the next.
    const urls = [await freePort(), port].map((each) => `redis://127.0.0.1:${each}`);
    const { engine, logged, error } = await started(t, { sentinel: { name: PRIMARY, urls } });
    assert.deepEqual([error, logged], [undefined, []]);
    assert.deepEqual(engine.doubts(), [
      `settings.state: maxmemory-policy of ${primary.name} is allkeys-lru, so that it may drop what it keeps: set "maxmemory-policy noeviction"`,
    ]);
    assert.equal(await engine.area('a').compareAndSet('k', undefined, '1'), undefined);
    assert.equal(await primary.command('GET', 'sdp:a:v:k'), '1');
  });

  it('says what is wrong', async (t) => {
    const primary = await redisFor(t, program);
    const port = await startSentinel(t, program, primary.port, [
      'requirepass geheim',
      'user app on >geheim -@all +sentinel|get-master-addr-by-name',
    ]);
    const nobody = await freePort();
    const own = 'settings.state.sentinel';
    const at = (each: number) => `redis "main" of the Sentinels at 127.0.0.1:${each} cannot be found:`;
    for (const [given, reason] of [
      [{ urls: [`redis://:geheim@127.0.0.1:${port}`] }],
      [{ urls: [`redis://127.0.0.1:${port}`], password: 'geheim' }],
      [{ urls: [`redis://127.0.0.1:${port}`], username: 'app', password: 'geheim' }],
      [{ urls: [`redis://127.0.0.1:${port}`] }, `${at(port)} a Sentinel needs a password: set ${own}.password`],
      [
        { urls: [`redis://:wrong@127.0.0.1:${port}`] },
        `${at(port)} a Sentinel refuses ${own}.username or ${own}.password`,
      ],
      [
        { name: 'mian', urls: [`redis://:geheim@127.0.0.1:${port}`] },
        `${at(port).replace('main', 'mian')} no Sentinel says where it is`,
      ],
      [
        { urls: [`redis://127.0.0.1:${nobody}`] },
        `${at(nobody)} no Sentinel can be reached; if TLS is expected, write rediss://`,
      ],
      [{ urls: [primary.url] }, `${at(primary.port)} a Sentinel answered: ERR unknown command 'sentinel'`],
    ] as const) {
      const message = await errorOf(t, { sentinel: { name: PRIMARY, ...given } });
      assert.equal(message, reason && `Error: settings.state: ${reason}`);
    }
  });
});

describeServers('TLS', (program) => {
  it('is spoken to the nodes of a cluster, to Sentinels, and to the primary that they name', async (t) => {
    const made = await certificateFor(t);
    if (made === undefined) return t.skip('openssl is not installed');
    const { cert, key, directives } = made;
    const secure = async () => ({ ...directives, 'tls-port': `${await freePort()}` });
    const tls = { ca: cert, cert, key, servername: 'redis.test' };
    const at = (port: string | number) => `rediss://127.0.0.1:${port}`;
    const cluster = { 'cluster-enabled': 'yes', 'cluster-port': `${await freePort()}`, 'tls-cluster': 'yes' };
    // One that has met no other does not know its own address.
    const ofNode = { ...(await secure()), ...cluster, 'cluster-announce-ip': '127.0.0.1' };
    const node = await redisFor(t, program, ofNode);
    await node.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await retried(async () => assert.match(String(await node.command('CLUSTER', 'INFO')), /cluster_state:ok/));
    const ofPrimary = await secure();
    await redisFor(t, program, ofPrimary);
    const ofSentinel = await secure();
    const lines = Object.entries({ ...ofSentinel, 'tls-replication': 'yes' }).map((line) => line.join(' '));
    await startSentinel(t, program, Number(ofPrimary['tls-port']), lines);
    for (const config of [
      { urls: [at(ofNode['tls-port'])] },
      { sentinel: { name: PRIMARY, urls: [at(ofSentinel['tls-port'])] } },
    ]) {
      const { engine, error } = await started(t, { ...config, tls });
      assert.equal(error, undefined);
      assert.equal(await engine.area('a').compareAndSet('k', undefined, '1'), undefined);
    }
  });
});
