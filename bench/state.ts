import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { isAddress, isBytes32 } from '../plugins-sdk/hex.ts';
import { stateConfig } from './configs.ts';
import { once as answerOf } from './load.ts';
import { Bench, dist, OTHERS, printHeader, type Service, verified } from './pairs.ts';
import { payments } from './payments.ts';

/**
 * Measures what state beyond the process costs, and what two workers do: each against one process that keeps its state in memory, in
 * the same run. `bench/README.md` says how to read what it prints.
 */

const { values: options } = parseArgs({
  options: {
    /** Seconds of each turn. */
    seconds: { type: 'string', default: '2' },
    /** How often each server has its turn. */
    rounds: { type: 'string', default: '9' },
  },
});
const PORT = 16_379;

/** The server as docs/operations.md would have it, on the core of all that is not measured. */
async function startRedis(folder: string): Promise<ChildProcess> {
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
  const words = ['redis-server', '--port', String(PORT), '--bind', '127.0.0.1', '--dir', folder, ...durable];
  const child = spawn('taskset', ['-c', OTHERS, ...words], { stdio: 'ignore' });
  await sleep(1000);
  if (child.exitCode !== null) throw new Error('redis-server does not run');
  return child;
}

async function workOf(service: Service, name: string, suffix: string) {
  const url = service.urls[name] ?? '';
  const id = service.ids[name];
  const { node }: { node?: unknown } = Object(await answerOf(`${service.urls.encoded}`));
  if (!isAddress(node) || !isBytes32(id)) throw new Error('an answer without a node');
  const own = name === 'paid' ? { headers: payments(node, id) } : {};
  const work = { name: `${name}, ${suffix}`, server: service, url, ...own };
  await verified(work);
  return work;
}

await Bench.run(Number(options.seconds), Number(options.rounds), async (bench) => {
  const redis = await startRedis(bench.folder);
  try {
    const { url } = await bench.start('upstream', OTHERS, [join(dist, 'bench/upstream.js')]);
    const file = { type: 'file', path: join(bench.folder, 'payments') };
    const engines = {
      file,
      redis: { type: 'redis', url: `redis://127.0.0.1:${PORT}` },
    };
    printHeader();
    for (const [engine, state] of Object.entries(engines)) {
      for (const name of engine === 'file' ? ['paid'] : ['encoded', 'cached', 'paid']) {
        // Both begin at the same time: what earlier work has left in a process costs later work.
        const memory = await bench.startService('memory', stateConfig(url, 'memory'));
        const other = await bench.startService(engine, stateConfig(url, state));
        // The ledger of payments has begun before the second in which they are made.
        await sleep(1000);
        await bench.pair(await workOf(memory, name, 'memory'), await workOf(other, name, engine));
        await Promise.all([memory.stop(), other.stop()]);
      }
    }
    const cores = '0,1';
    const config = stateConfig(url, engines.redis);
    for (const name of ['encoded', 'cached']) {
      const one = await bench.startService('one', config, { cores });
      const two = await bench.startService('two', config, { cores, options: ['--workers', '2'] });
      await bench.pair(await workOf(one, name, 'one process'), await workOf(two, name, 'two workers'));
      await Promise.all([one.stop(), two.stop()]);
    }
  } finally {
    const gone = once(redis, 'exit');
    redis.kill();
    await gone;
  }
});
