import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { largestConfig } from './configs.ts';
import { documentOf, worstRecipes } from './documents.ts';
import { floodPipelined } from './pipelined-flood.ts';
import { type ServerProcess, startServer } from './server-process.ts';

/** Measures what the worst requests cost: processor time of each, and the longest turn of the event loop. */

const SERVER = '0';
/** Requests of one measurement, behind as many that warm the code up. */
const REQUESTS = 10;
const PIPELINED = 20_000;
const PATHS = ['$..*..*..*..x', '$..*..x', '$..x', '$[*,*,*,*,*,*,*,*].x', '$..[x,y,z,w]', `$${'..*'.repeat(100)}`];
const HEADERS = { 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' };
const dist = fileURLToPath(new URL('../..', import.meta.url));
const env = { SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}`, LOG_FORMAT: 'json' };

const names = Object.keys(worstRecipes);
const documents = Object.values(worstRecipes).map((recipe) => documentOf(recipe));
const upstream = createServer(({ url = '' }, response) => {
  const document = documents[Number(/\d+/.exec(url)?.[0])] ?? '{}';
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(document);
});
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
const folder = await mkdtemp(join(tmpdir(), 'signed-data-proxy-bench-'));

async function start(name: string, options: readonly string[]) {
  const file = join(folder, `${name}.yaml`);
  const { port } = upstream.address() as AddressInfo;
  await writeFile(file, largestConfig(`http://127.0.0.1:${port}`));
  const args = [...options, join(dist, 'cli/main.js'), 'start', '-c', file];
  const server = await startServer({ name, cores: SERVER, args, env, folder });
  const ids = (await readFile(server.log, 'utf8')).matchAll(/bench\/(\w+) (0x[0-9a-f]{64})/g);
  return { server, ids: new Map([...ids].map(([, endpoint = '', id = '']) => [endpoint, id])) };
}

type Started = Awaited<ReturnType<typeof start>>;

async function ask({ server, ids }: Started, endpoint: string, parameters: object): Promise<void> {
  const url = `${server.url}/endpoints/${ids.get(endpoint)}`;
  const response = await fetch(url, { method: 'POST', headers: HEADERS, body: JSON.stringify({ parameters }) });
  const text = await response.text();
  // A path that finds nothing, or takes too many steps, is refused.
  if (response.status !== 200 && !/_path|No value/.test(text)) throw new Error(`${response.status}: ${text}`);
}

/** 20,000 requests in one write, and all answers. */
async function pipeline({ server }: Started): Promise<void> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET /health HTTP/1.1\r\nHost: bench\r\n\r\n`.repeat(PIPELINED));
  let answers = 0;
  for await (const chunk of socket) {
    answers += String(chunk).split('HTTP/1.1 ').length - 1;
    if (answers >= PIPELINED) break;
  }
}

/** The longest of the turns that were printed while the work was done, in milliseconds of CPU. */
async function longestTurn(server: ServerProcess, work: () => Promise<void>): Promise<number> {
  const before = (await readFile(server.log)).length;
  await work();
  const printed = (await readFile(server.log)).subarray(before).toString();
  return Math.max(0, ...[...printed.matchAll(/^turn ([\d.]+)$/gm)].map(([, turn]) => Number(turn)));
}

async function measure(name: string, work: (started: Started) => Promise<void>, times = REQUESTS): Promise<void> {
  const repeated = async (started: Started) => {
    for (let i = 0; i < times; i++) await work(started);
  };
  await repeated(plain);
  const before = await plain.server.cpu();
  await repeated(plain);
  const cpu = ((await plain.server.cpu()) - before) / 1000 / times;
  await repeated(watched);
  const turn = await longestTurn(watched.server, () => repeated(watched));
  process.stdout.write(`| ${name} | ${cpu.toFixed(0)} | ${turn.toFixed(0)} |\n`);
}

/** Thousands of connections that pipeline and read nothing; by itself, since what it leaves in memory would count elsewhere. */
async function measureFlood(): Promise<void> {
  const flooded = await start('flooded', [
    '--max-old-space-size=256',
    '--import',
    join(dist, 'tools/bench/turn-watch.js'),
  ]);
  const { pid = 0, url } = flooded.server;
  try {
    let flood: Awaited<ReturnType<typeof floodPipelined>> | undefined;
    const work = async () => {
      flood = await floodPipelined(url, pid, { connections: 4096, addresses: 8, random: Math.random });
    };
    const before = await flooded.server.cpu();
    const turn = await longestTurn(flooded.server, work);
    const cpu = ((await flooded.server.cpu()) - before) / 1000;
    const { slowest, failures, growth } = flood ?? {};
    process.stdout.write(`| 4096 connections, 64 KiB of requests each | ${cpu.toFixed(0)} | ${turn.toFixed(0)} |\n`);
    process.stdout.write(
      `\nMeanwhile: slowest /health ${slowest} ms, ${failures} failed; ${growth?.toFixed(0)} MiB more resident\n`,
    );
  } finally {
    await flooded.server.stop();
  }
}

const plain = await start('plain', []);
const watched = await start('watched', ['--import', join(dist, 'tools/bench/turn-watch.js')]);
try {
  process.stdout.write('\n| request | CPU ms | longest turn, ms |\n|---|---|---|\n');
  for (const [i, name] of names.entries()) {
    await measure(`raw: ${name}`, (started) => ask(started, 'raw', { document: i }));
    await measure(`encoded: ${name}`, (started) => ask(started, 'path', { document: i, _path: '$.a.b' }));
  }
  for (const path of PATHS) {
    const wide = names.indexOf('short keys');
    await measure(`path: ${path.slice(0, 32)}`, (started) => ask(started, 'path', { document: wide, _path: path }));
  }
  await measure(`${PIPELINED} requests to /health in one write`, pipeline, 3);
  await measureFlood();
} finally {
  await Promise.all([plain, watched].map(({ server }) => server.stop()));
  upstream.close();
  upstream.closeAllConnections();
  await rm(folder, { recursive: true });
}
