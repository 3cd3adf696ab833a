/** Several servers of a kind that know each other: a cluster, or a primary with replicas and Sentinels. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Lifetime } from '../support/lifetime.ts';
import { retried } from '../support/wait.ts';
import { type Directives, freePort, type RedisServer, redisFor } from './redis-server.ts';

/** Milliseconds of silence after which the others take a server for dead. */
const SILENCE = '1000';

/** The slots of each primary of a cluster. */
const RANGES = ['0 5460', '5461 10922', '10923 16383'];

/** Numbers from 0. */
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** A Redis Cluster of three primaries, which come first, and replicas of them. */
export async function clusterFor(lifetime: Lifetime, program: string, directives: Directives = {}, replicas = 3) {
  const start = async () => {
    const bus = await freePort();
    const own = { 'cluster-enabled': 'yes', 'cluster-node-timeout': SILENCE, 'cluster-port': `${bus}` };
    return { bus, server: await redisFor(lifetime, program, { ...own, ...directives }) };
  };
  const nodes = await Promise.all(upTo(RANGES.length + replicas).map(start));
  const servers = nodes.map(({ server }) => server);
  const [first] = servers;
  assert.ok(first);
  for (const { server, bus } of nodes.slice(1))
    await first.command('CLUSTER', 'MEET', '127.0.0.1', `${server.port}`, `${bus}`);
  const known = new RegExp(`known_nodes:${servers.length}\\r`);
  await retried(() => everyone(servers, async (server) => assert.match(await infoOf(server), known)));
  for (const [index, range] of RANGES.entries()) {
    await servers[index]?.command('CLUSTER', 'ADDSLOTSRANGE', ...range.split(' '));
    const id = String(await servers[index]?.command('CLUSTER', 'MYID'));
    await retried(() => servers[index + RANGES.length]?.command('CLUSTER', 'REPLICATE', id));
  }
  await retried(() => everyone(servers, async (server) => assert.match(await infoOf(server), /cluster_state:ok/)));
  await retried(() => everyone(servers.slice(RANGES.length), linked));
  return servers;
}

/** The server that keeps a key of a cluster, as it was made. */
export async function keeperOf(servers: readonly RedisServer[], key: string): Promise<RedisServer> {
  const slot = Number(await servers[0]?.command('CLUSTER', 'KEYSLOT', key));
  const keeper = servers[RANGES.findIndex((range) => slot <= Number(range.split(' ')[1]))];
  assert.ok(keeper);
  return keeper;
}

const infoOf = async (server: RedisServer) => String(await server.command('CLUSTER', 'INFO'));
const linked = async (server: RedisServer) => {
  assert.match(String(await server.command('INFO', 'replication')), /role:slave[\s\S]*master_link_status:up/);
};
const everyone = (servers: readonly RedisServer[], look: (server: RedisServer) => Promise<void>) =>
  Promise.all(servers.map(look));

/** The name of the primary at its Sentinels. */
export const PRIMARY = 'main';

/** A primary, two replicas, and three Sentinels; the servers begin with the primary. */
export async function sentinelsFor(lifetime: Lifetime, program: string, directives: Directives = {}) {
  const primary = await redisFor(lifetime, program, directives);
  const replicaof = { replicaof: `127.0.0.1 ${primary.port}` };
  const replicas = await Promise.all(upTo(2).map(() => redisFor(lifetime, program, { ...directives, ...replicaof })));
  await retried(() => everyone(replicas, linked));
  const ports = await Promise.all(upTo(3).map(() => startSentinel(lifetime, program, primary.port)));
  return { servers: [primary, ...replicas], ports };
}

/** The port of a Sentinel. */
export async function startSentinel(
  lifetime: Lifetime,
  program: string,
  primary: number,
  more: readonly string[] = [],
): Promise<number> {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), 'sdp-sentinel-'));
  const lines = [
    ...[`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, `sentinel monitor ${PRIMARY} 127.0.0.1 ${primary} 2`],
    ...[`sentinel down-after-milliseconds ${PRIMARY} ${SILENCE}`, `sentinel failover-timeout ${PRIMARY} 3000`],
    ...more,
  ];
  const file = join(folder, 'sentinel.conf');
  await writeFile(file, lines.join('\n'));
  const child = spawn(program, [file, '--sentinel'], { stdio: ['ignore', 'pipe', 'inherit'] });
  lifetime.after(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    await rm(folder, { recursive: true, force: true });
  });
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    output += chunk;
    if (output.includes('+monitor')) break;
  }
  child.stdout.resume();
  return port;
}
