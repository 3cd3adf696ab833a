import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hooked, largeConfig, measuredConfig, remoteSigner } from './configs.ts';
import { load } from './load.ts';
import { cpuShares, readProfile } from './profile.ts';
import { profileOf } from './profiled.ts';
import { releaseBuild } from './release.ts';
import {
  Bench,
  dist,
  type Measured,
  print,
  readRounds,
  root,
  roundOptions,
  SERVER,
  type Service,
  type Turns,
} from './rounds.ts';
import { circumstances, comparison, table, writeMarked } from './table.ts';

/**
 * Measures the service against servers that do the same work on other stacks, and against the last release, in the same run.
 * `tools/bench/README.md` says how to read what it prints.
 */

const { values } = parseArgs({
  options: {
    ...roundOptions(3000, 15),
    /** Requests before resident memory is read, in all. */
    memory: { type: 'string', default: '200000' },
    /** Writes the tables into `tools/bench/README.md`. */
    write: { type: 'boolean', default: false },
    /** Leaves `service.cpuprofile` in the working directory. */
    profile: { type: 'boolean', default: false },
  },
});
const options = readRounds(values);
/** Several times as many as a turn, so that the profile has enough samples. */
const PROFILED = 10;

interface Builds {
  readonly release: Service;
  readonly own: Service;
}

/** Both builds with the same settings. */
async function both(bench: Bench, kind: string, config: string): Promise<Builds> {
  const release = await bench.startService(`${kind}-release`, config, { build: releaseBuild() });
  return { release, own: await bench.startService(`${kind}-own`, config) };
}

function measured(name: string, server: Service, endpoint = 'encoded'): Measured {
  return { name, server, url: server.urls[endpoint] ?? '' };
}

async function againstFloor(bench: Bench, upstream: string, { release, own }: Builds): Promise<Turns[][]> {
  const env = { UPSTREAM: upstream };
  const floor = await bench.start('floor', SERVER, [join(dist, 'tools/bench/floor.js')], env);
  const bare = await bench.start('bare', SERVER, [join(dist, 'tools/bench/bare.js')], env);
  const groups: Turns[][] = [];
  for (const endpoint of ['encoded', 'raw', 'cached']) {
    const group = [
      { name: `${endpoint}: floor`, server: floor, url: `${floor.url}/${endpoint}` },
      { name: `${endpoint}: bare node:http`, server: bare, url: `${bare.url}/${endpoint}` },
      measured(`${endpoint}: last release`, release, endpoint),
      measured(`${endpoint}: this build`, own, endpoint),
    ];
    groups.push(await bench.measure(group));
  }
  return groups;
}

async function variants(bench: Bench, upstream: string, plain: Builds): Promise<Turns[][]> {
  const signer = await bench.startHelper('signer');
  const hooks = await both(bench, 'hooks', measuredConfig(upstream, hooked()));
  const remote = await both(bench, 'remote', measuredConfig(upstream, remoteSigner(signer.url)));
  const isolated = await both(bench, 'isolated', measuredConfig(upstream, hooked({ isolate: true })));
  const group = (name: string, { release, own }: Builds, against: Measured, endpoint?: string) =>
    bench.measure([
      against,
      measured(`${name}: last release`, release, endpoint),
      measured(`${name}: this build`, own, endpoint),
    ]);
  const encoded = measured('encoded: this build', plain.own);
  return [
    await group('six hooks', hooks, encoded),
    await group('receipt', plain, encoded, 'receipt'),
    await group('JSON-RPC signer', remote, encoded),
    await group('six hooks, isolated', isolated, measured('six hooks: this build', hooks.own)),
  ];
}

async function shares(): Promise<string> {
  const requests = PROFILED * options.requests;
  const found = await profileOf({ endpoint: 'encoded', requests }, async (file, from) => {
    if (values.profile) await copyFile(file, join(process.cwd(), 'service.cpuprofile'));
    return cpuShares(await readProfile(file, from));
  });
  const rows = found.filter(([, share]) => share >= 0.005);
  return table(
    ['part, encoded requests', 'share of busy CPU'],
    rows.map(([part, share]) => [part, `${(100 * share).toFixed(1)} %`]),
  );
}

async function startTimes(bench: Bench, upstream: string): Promise<string> {
  const rows: (string | number)[][] = [];
  for (const count of [1, 1000]) {
    const file = join(bench.folder, 'large.yaml');
    await writeFile(file, largeConfig(upstream, count));
    const time = async (program: string) => {
      const times: number[] = [];
      for (let i = 0; i < 5; i++) {
        const server = await bench.start('starting', SERVER, [program, 'start', '-c', file]);
        times.push(server.started);
        await server.stop();
      }
      return Math.min(...times).toFixed(0);
    };
    rows.push([`${count} endpoints`, await time(join(dist, 'cli/bin.js')), await time(join(root, 'cli/bin.js'))]);
  }
  return table(['start to listening, ms (best of 5)', 'built', 'from source'], rows);
}

async function memory(bench: Bench, upstream: string): Promise<string> {
  const service = await bench.startService('memory', measuredConfig(upstream));
  const portion = Math.ceil(Number(values.memory) / 4);
  const rows = [[0, (await service.memory()).toFixed(0)]];
  for (let i = 1; i <= 4; i++) {
    await load({ url: service.urls.encoded ?? '', requests: portion });
    rows.push([i * portion, (await service.memory()).toFixed(0)]);
  }
  await service.stop();
  return table(['requests so far', 'resident MiB'], rows);
}

const groups = await Bench.run(options, async (bench) => {
  const { url } = await bench.startHelper('upstream');
  const plain = await both(bench, 'plain', measuredConfig(url));
  return [...(await againstFloor(bench, url, plain)), ...(await variants(bench, url, plain))];
});
const others = await Bench.run(options, async (bench) => {
  const { url } = await bench.startHelper('upstream');
  return [await startTimes(bench, url), await memory(bench, url)];
});
const text = [circumstances(options), comparison(groups), await shares(), ...others].join('\n\n');
print(text);
if (values.write) await writeMarked(join(root, 'tools/bench/README.md'), { latest: text });
