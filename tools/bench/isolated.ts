import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hooked, measuredConfig } from './configs.ts';
import type { Headers } from './load.ts';
import { Bench, type Measured, OTHERS, print, root, type Service } from './rounds.ts';
import { comparison } from './table.ts';

/**
 * What it costs to isolate a plugin, and what others notice of one that never gives way. `tools/bench/README.md` says how to read
 * what it prints.
 */

const SPINS = 10;
/** Milliseconds from one spin to the next. */
const PERIOD_MS = 2500;
const BUDGET_MS = 500;

const [requests = '3000', rounds = '9'] = process.argv.slice(2);
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
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
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
  print(`\n| ${SPINS} spins at a budget of ${BUDGET_MS} ms | |\n|---|---|`);
  print(`| refused after, ms: first, last | ${answered[0]?.toFixed(0)}, ${answered.at(-1)?.toFixed(0)} |`);
  print(`| others meanwhile, refused | ${meanwhile.length}, ${refused} |`);
  print(`| their p99, ms | ${times[Math.floor(times.length * 0.99)]?.toFixed(0)} |`);
}

await Bench.run({ requests: Number(requests), rounds: Number(rounds) }, async (bench) => {
  const { url } = await bench.startHelper('upstream');
  const here = await bench.startService('here', measuredConfig(url, hooked()));
  const config = measuredConfig(url, hooked({ isolate: true }));
  const beside = await bench.startService('beside', config);
  const shared = await bench.startService('shared', config);
  moveChildren(beside);
  const measured = (name: string, server: Service): Measured => ({ name, server, url: server.urls.encoded ?? '' });
  const group = [
    measured('six hooks', here),
    measured('isolated, on the core of the load', beside),
    measured('isolated, on the core of the service', shared),
  ];
  print(comparison([await bench.measure(group)]));
  await Promise.all([here, beside, shared].map((server) => server.stop()));
  const plugins = [{ source: join(root, 'tools/bench/spin.mjs'), isolate: true, timeout: BUDGET_MS }];
  await spins(await bench.startService('spinning', measuredConfig(url, { plugins }), { cores: '0,1' }));
});
