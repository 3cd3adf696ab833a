import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { measuredConfig } from './configs.ts';
import { load } from './load.ts';
import { Bench, dist } from './rounds.ts';

/** Has a build answer requests, as many again behind those that warm it up, and gives their CPU profile, as V8 writes it. */
export function profileOf<T>(
  { endpoint, requests, build = dist }: { endpoint: string; requests: number; build?: string },
  use: (file: string, from: bigint) => Promise<T>,
): Promise<T> {
  return Bench.run({ requests, rounds: 0 }, async (bench) => {
    const { url } = await bench.startHelper('upstream');
    const nodeOptions = ['--cpu-prof', `--cpu-prof-dir=${bench.folder}`];
    const how = { build, nodeOptions, entry: 'cli/main.js' } as const;
    const service = await bench.startService('profiled', measuredConfig(url), how);
    const work = { url: service.urls[endpoint] ?? '', requests };
    await load(work);
    const from = process.hrtime.bigint();
    await load(work);
    await service.stop();
    const name = (await readdir(bench.folder)).find((file) => file.endsWith('.cpuprofile'));
    if (name === undefined) throw new Error('node left no profile');
    return use(join(bench.folder, name), from);
  });
}
