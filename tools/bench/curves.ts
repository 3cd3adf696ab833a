import { mkdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { isAddress, isBytes32 } from '../../lib/eth/hex.ts';
import { svgOf } from './chart.ts';
import { type Curve, curves, type Places, type Point } from './curve-list.ts';
import { once } from './load.ts';
import { memoryTable } from './memory.ts';
import { payments } from './payments.ts';
import { startRedis } from './redis.ts';
import {
  Bench,
  type Measured,
  print,
  readRounds,
  root,
  roundOptions,
  SERVER,
  type Service,
  type Turns,
} from './rounds.ts';
import { median, ratios, spreadOf, textOfSpread } from './statistics.ts';
import { circumstances, table, writeMarked } from './table.ts';

/** Measures what a request costs, one thing after the other made larger; writes `docs/performance.md` and its pictures. */

const { values } = parseArgs({
  options: {
    ...roundOptions(2000, 11),
    /** Names of curves, or `memory`, if not all. */
    only: { type: 'string' },
  },
});
const options = readRounds(values);
const names = values.only?.split(',') ?? [...Object.keys(curves), 'memory'];

/** Payments of an answer that has to be paid for. */
async function paymentsFor(service: Service): Promise<Pick<Measured, 'headers'>> {
  const { node }: { node?: unknown } = Object(await once(service.urls.encoded ?? ''));
  if (!isAddress(node) || !isBytes32(service.ids.paid)) throw new Error('an answer without a node');
  return { headers: payments(node, service.ids.paid) };
}

async function start(bench: Bench, name: string, point: Point): Promise<Measured> {
  const { label, config, endpoint = 'encoded', connections, part = 1, workers } = point;
  const every = `0-${cpus().length - 1}`;
  const service = await bench.startService(name, config, {
    cores: workers === undefined ? SERVER : every,
    options: workers === undefined ? [] : ['--workers', String(workers)],
  });
  return {
    name: label,
    server: service,
    url: service.urls[endpoint] ?? '',
    part,
    ...(connections === undefined ? {} : { connections }),
    ...(endpoint === 'paid' ? await paymentsFor(service) : {}),
  };
}

const cpuOf = ({ turns }: Turns) => turns.map(({ cpu }) => cpu);

async function write(name: string, { title, across, isLine }: Curve, measured: readonly Turns[]): Promise<void> {
  const [first = []] = measured.map(cpuOf);
  const points = measured.map((one) => ({ label: one.name, ...spreadOf(ratios(cpuOf(one), first)) }));
  const rows = measured.map((one, i) => [
    one.name,
    median(cpuOf(one)).toFixed(0),
    points[i] === undefined || i === 0 ? '1' : textOfSpread(points[i]),
    median(one.turns.map(({ perSecond }) => perSecond)).toFixed(0),
  ]);
  const text = table([across, 'CPU µs a request', `times ${measured[0]?.name}`, 'requests/s'], rows);
  print(`\n${title}\n\n${text}`);
  const up = `CPU, times “${measured[0]?.name}”`;
  await writeFile(join(root, `docs/images/performance/${name}.svg`), svgOf({ title, across, up, isLine, points }));
  await writeMarked(join(root, 'docs/performance.md'), { [name]: text });
}

async function measure(bench: Bench, name: string, curve: Curve, places: Places): Promise<void> {
  const group = await Promise.all(curve.points(places).map((point, i) => start(bench, `${name}-${i}`, point)));
  // The ledger of payments has begun before the second in which they are made.
  await sleep(1000);
  await write(name, curve, await bench.measure(group));
  await Promise.all(group.map(({ server }) => server.stop()));
}

await mkdir(join(root, 'docs/images/performance'), { recursive: true });
await Bench.run(options, async (bench) => {
  const redis = await startRedis(bench.folder);
  if (redis === undefined) print('redis-server is not installed: its points are left out');
  try {
    const { url: upstream } = await bench.startHelper('upstream');
    const { url: signer } = await bench.startHelper('signer');
    const places = { upstream, signer, redis: redis?.url, folder: bench.folder };
    for (const [name, curve] of Object.entries(curves).filter(([key]) => names.includes(key))) {
      // One that fails, such as a Redis that a busy machine keeps waiting, costs no other.
      await measure(bench, name, curve, places).catch((error: unknown) => {
        print(`\n${curve.title}: left as it was, ${error}`);
        process.exitCode = 1;
      });
    }
    if (names.includes('memory')) {
      const text = await memoryTable(bench, upstream, options.warmUp);
      print(`\n${text}`);
      await writeMarked(join(root, 'docs/performance.md'), { memory: text });
    }
  } finally {
    await redis?.stop();
  }
});
await writeMarked(join(root, 'docs/performance.md'), { circumstances: circumstances(options) });
