import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { measuredConfig } from './configs.ts';
import type { Headers } from './load.ts';
import { Bench, dist, type Measured, OTHERS, print, printHeader, type Service, verified } from './pairs.ts';

/**
 * What it costs to isolate a plugin, and what others notice of one that never gives way. `bench/README.md` says how to read
 * what it prints.
 */

const SPINS = 10;
/** Milliseconds from one spin to the next. */
const PERIOD = 2500;
const BUDGET = 500;

const [seconds = '2', rounds = '9'] = process.argv.slice(2);
const source = (name: string) => join(dist, '../bench', name);
const headers = { 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' };

/** Moves the processes of plugins away from the core of the service, from which they have it. */
function moveChildren({ pid }: Service): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  for (const child of children) execFileSync('taskset', ['-a', '-p', '-c', OTHERS, child]);
}

async function ask({ urls }: Service, more: Headers = {}): Promise<{ status: number; took: number }> {
  const began = performance.now();
  const body = JSON.stringify({ parameters: { symbol: 'ETH' } });
  const response = await fetch(urls.encoded ?? '', { method: 'POST', headers: { ...headers, ...more }, body });
  await response.text();
  return { status: response.status, took: performance.now() - began };
}

async function spins(service: Service): Promise<void> {
  const others: { status: number; took: number; at: number }[] = [];
  const spun: { status: number; took: number; at: number }[] = [];
  let isOver = false;
  const work = async () => {
    while (!isOver) {
      const at = performance.now();
      others.push({ ...(await ask(service)), at });
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  const working = Array.from({ length: 8 }, work);
  for (let i = 0; i < SPINS; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, PERIOD));
    const at = performance.now();
    spun.push({ ...(await ask(service, { 'x-spin': '1' })), at });
  }
  isOver = true;
  await Promise.all(working);
  const meanwhile = others.filter(({ at, took }) =>
    spun.some((spin) => at < spin.at + spin.took && at + took > spin.at),
  );
  const times = meanwhile.map(({ took }) => took).sort((a, b) => a - b);
  const answered = spun.map(({ took }) => took).sort((a, b) => a - b);
  const refused = meanwhile.filter(({ status }) => status !== 200).length;
  print(`\n| ${SPINS} spins at a budget of ${BUDGET} ms | |\n|---|---|`);
  print(`| refused after, ms: first, last | ${answered[0]?.toFixed(0)}, ${answered.at(-1)?.toFixed(0)} |`);
  print(`| others meanwhile, refused | ${meanwhile.length}, ${refused} |`);
  print(`| their p99, ms | ${times[Math.floor(times.length * 0.99)]?.toFixed(0)} |`);
}

await Bench.run(Number(seconds), Number(rounds), async (bench) => {
  const upstream = await bench.start('upstream', OTHERS, [join(dist, 'bench/upstream.js')]);
  const config = (entry: object) =>
    measuredConfig(upstream.url, { plugins: [{ source: source('six-hooks.mjs'), ...entry }] });
  const here = await bench.startService('here', config({}));
  const beside = await bench.startService('beside', config({ isolate: true }));
  const shared = await bench.startService('shared', config({ isolate: true }));
  moveChildren(beside);
  const measured = (name: string, server: Service): Measured => ({ name, server, url: server.urls.encoded ?? '' });
  const hooks = measured('six hooks', here);
  const rows = [
    measured('isolated, on the core of the load', beside),
    measured('isolated, on the core of the service', shared),
  ];
  for (const each of [hooks, ...rows]) await verified(each);
  printHeader();
  for (const row of rows) await bench.pair(hooks, row);
  await Promise.all([here, beside, shared].map((server) => server.stop()));
  const entry = { source: source('spin.mjs'), isolate: true, timeout: BUDGET };
  const spinning = await bench.startService('spinning', measuredConfig(upstream.url, [entry]), { cores: '0,1' });
  await spins(spinning);
});
