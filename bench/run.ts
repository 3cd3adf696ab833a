import { copyFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createSigner } from '../plugins-sdk/signer.ts';
import { largeConfig, measuredConfig } from './configs.ts';
import { cpuShares } from './cpu-share.ts';
import { load } from './load.ts';
import { Bench, dist, OTHERS, print, printHeader, SERVER, verified } from './pairs.ts';
import { SIGNER_KEY } from './signer-key.ts';

/**
 * Measures the service against servers that do the same work, or none, on the same stack in the same run.
 * `bench/README.md` says how to read what it prints.
 */

const { values: options } = parseArgs({
  options: {
    /** Seconds of each turn. */
    seconds: { type: 'string', default: '2' },
    /** How often each server has its turn. */
    rounds: { type: 'string', default: '9' },
    /** Requests before resident memory is read, in all. */
    requests: { type: 'string', default: '200000' },
    /** Leaves `service.cpuprofile` in the working directory. */
    profile: { type: 'boolean', default: false },
  },
});
const root = fileURLToPath(new URL('../..', import.meta.url));

async function shares(bench: Bench, upstream: string): Promise<void> {
  const profiled = await bench.startService('profiled', measuredConfig(upstream), {
    nodeOptions: ['--cpu-prof', `--cpu-prof-dir=${bench.folder}`],
  });
  // Long enough for the start, which is in the profile too, to count for little.
  await load(profiled.urls.encoded ?? '', { duration: 20 });
  await profiled.stop();
  const file = (await readdir(bench.folder)).find((name) => name.endsWith('.cpuprofile'));
  if (file === undefined) throw new Error('node left no profile');
  print('\n| part, encoded requests | share of busy CPU |\n|---|---|');
  for (const [part, share] of await cpuShares(join(bench.folder, file))) {
    if (share >= 0.005) print(`| ${part} | ${(100 * share).toFixed(1)} % |`);
  }
  if (options.profile) await copyFile(join(bench.folder, file), join(process.cwd(), 'service.cpuprofile'));
}

async function startTimes(bench: Bench, upstream: string): Promise<void> {
  print('\n| start to listening, ms (best of 5) | built | from source |\n|---|---|---|');
  for (const count of [1, 1000]) {
    const file = join(bench.folder, 'large.yaml');
    await writeFile(file, largeConfig(upstream, count));
    const time = async (args: readonly string[]) => {
      const times: number[] = [];
      for (let i = 0; i < 5; i++) {
        const server = await bench.start('starting', SERVER, [...args, 'start', '-c', file]);
        times.push(server.started);
        await server.stop();
      }
      return Math.min(...times).toFixed(0);
    };
    const built = await time([join(dist, 'cli/bin.js')]);
    const source = await time([join(root, 'cli/bin.js')]);
    print(`| ${count} endpoints | ${built} | ${source} |`);
  }
}

async function memory(bench: Bench, upstream: string): Promise<void> {
  const service = await bench.startService('memory', measuredConfig(upstream));
  print('\n| requests so far | resident MiB |\n|---|---|');
  print(`| 0 | ${(await service.memory()).toFixed(0)} |`);
  const portions = 4;
  for (let i = 1; i <= portions; i++) {
    const amount = Math.ceil(Number(options.requests) / portions);
    await load(service.urls.encoded ?? '', { amount });
    print(`| ${i * amount} | ${(await service.memory()).toFixed(0)} |`);
  }
  await service.stop();
}

await Bench.run(Number(options.seconds), Number(options.rounds), async (bench) => {
  const upstream = await bench.start('upstream', OTHERS, [join(dist, 'bench/upstream.js')]);
  const floor = await bench.start('floor', SERVER, [join(dist, 'bench/floor.js')], { UPSTREAM: upstream.url });
  const noOp = await bench.start('no-op', SERVER, [join(dist, 'bench/no-op.js')]);
  const service = await bench.startService('service', measuredConfig(upstream.url));
  const hooked = await bench.startService(
    'hooked',
    measuredConfig(upstream.url, { plugins: [{ source: join(root, 'bench/six-hooks.mjs') }] }),
  );
  const signer = await bench.start('signer', OTHERS, [join(dist, 'bench/signer.js')]);
  const address = createSigner(SIGNER_KEY).address;
  const remote = await bench.startService(
    'remote',
    measuredConfig(upstream.url, { signer: { type: 'json-rpc', url: signer.url, address, concurrency: 32 } }),
  );
  const encoded = { name: 'encoded', server: service, url: service.urls.encoded ?? '' };
  const hooks = { name: 'encoded, six hooks', server: hooked, url: hooked.urls.encoded ?? '' };
  const receipt = { name: 'encoded, receipt', server: service, url: service.urls.receipt ?? '' };
  const remotely = { name: 'encoded, JSON-RPC signer', server: remote, url: remote.urls.encoded ?? '' };
  const raw = { name: 'raw', server: service, url: service.urls.raw ?? '' };
  const cached = { name: 'cached', server: service, url: service.urls.cached ?? '' };
  const floorEncoded = { name: 'floor, encoded', server: floor, url: `${floor.url}/encoded` };
  const floorRaw = { name: 'floor, raw', server: floor, url: `${floor.url}/raw` };
  for (const measured of [encoded, hooks, receipt, remotely, raw, cached, floorEncoded, floorRaw])
    await verified(measured);
  printHeader();
  await bench.pair(floorEncoded, encoded);
  await bench.pair(encoded, hooks);
  await bench.pair(encoded, receipt);
  await bench.pair(encoded, remotely);
  await bench.pair(floorRaw, raw);
  await bench.pair({ name: 'no-op', server: noOp, url: `${noOp.url}/kept` }, cached);
  await Promise.all([floor, noOp, service, hooked, signer, remote].map((server) => server.stop()));
  await shares(bench, upstream.url);
  await startTimes(bench, upstream.url);
  await memory(bench, upstream.url);
});
