import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isSlower, median, ratios, spread, table } from './figures.ts';
import { Bench, configOf, dist, root, type Turn } from './load.ts';

/** Measures this build against the floor and the last release; `tools/bench/README.md` says how to read it and how it judges. */

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '20' },
    /** Number of sets of processes, among which the rounds are divided. */
    sets: { type: 'string', default: '4' },
    only: { type: 'string', default: 'encoded,raw,cached' },
    /** Writes the tables into `tools/bench/README.md`. */
    write: { type: 'boolean', default: false },
    /** Records the current commit as the last release. */
    keep: { type: 'boolean', default: false },
  },
});
const { requests, rounds, sets } = values;
const RELEASE_FILE = join(root, 'tools/bench/release.json');
const page = join(root, 'tools/bench/README.md');
const day = new Date().toISOString().slice(0, 10);

/** Builds the last release once, into `.cache/bench`. @returns the path of its `dist`. */
function releaseBuild(): string {
  const { commit } = JSON.parse(readFileSync(RELEASE_FILE, 'utf8'));
  const folder = join(root, '.cache/bench', commit);
  if (!existsSync(folder)) {
    const cwd = `${folder}.unfinished`;
    rmSync(cwd, { recursive: true, force: true });
    mkdirSync(cwd, { recursive: true });
    const steps = [`git -C ${root} archive ${commit} | tar -x`, 'npm ci --no-audit --no-fund --ignore-scripts'];
    for (const step of [...steps, 'npm run -s build']) execFileSync('sh', ['-c', step], { cwd, stdio: 'inherit' });
    renameSync(cwd, folder);
  }
  return join(folder, 'dist');
}

/** The turns of each server, in the order of the servers. */
type Found = { readonly work: string; readonly turns: readonly Turn[][] };

const all = (turns: readonly Turn[] | undefined, key: keyof Turn) => (turns ?? []).map((turn) => turn[key]);
const slowdown = ({ turns: [, release, own] }: Found) => ratios(all(own, 'cpu'), all(release, 'cpu'));

/** Measures with new processes for each set, since V8 may by chance optimize one process better than another. */
async function measure(release: string, works: readonly string[]): Promise<Found[]> {
  const found = works.map((work) => ({ work, turns: [[], [], []] as Turn[][] }));
  for (let set = 0; set < Number(sets); set++)
    await Bench.run(async (bench, upstream) => {
      const config = configOf(upstream);
      const floor = await bench.floor(upstream);
      const servers = [floor, await bench.service('release', config, release), await bench.service('own', config)];
      for (const { work, turns } of found) {
        const more = await bench.measure(servers, work, Number(requests), Math.ceil(Number(rounds) / Number(sets)));
        for (const [i, list] of more.entries()) turns[i]?.push(...list);
      }
    });
  console.log(`\n${costs(found)}`);
  return found;
}

function costs(found: readonly Found[]): string {
  const header = ['work', 'floor, CPU µs', 'last release', 'this build', 'floor by this', 'this by release'];
  const rows = found.map((one) => {
    const [floor, , own] = one.turns;
    const medians = one.turns.map((turns) => median(all(turns, 'cpu')).toFixed(0));
    const speed = [median(all(own, 'perSecond')).toFixed(0), median(all(own, 'p99')).toFixed(0)];
    const byFloor = spread(ratios(all(floor, 'cpu'), all(own, 'cpu')));
    const verdict = isSlower(slowdown(one)) ? 'slower' : 'as fast';
    return [one.work, ...medians, byFloor, spread(slowdown(one)), ...speed, verdict];
  });
  return table([...header, 'requests/s', 'p99 ms', 'verdict'], rows);
}

/** Measures how long each build takes to listen. */
function starts(release: string): Promise<string> {
  return Bench.run(async (bench, upstream) => {
    const time = async (count: number, build: string) => {
      const times: number[] = [];
      for (let i = 0; i < 5; i++) {
        const server = await bench.service('starting', configOf(upstream, count), build);
        times.push(server.started);
        await server.stop();
      }
      return Math.min(...times).toFixed(0);
    };
    const rows: string[][] = [];
    for (const count of [1, 1000]) rows.push([`${count}`, await time(count, dist), await time(count, release)]);
    return table(['endpoints: start to listening, ms (best of 5)', 'this build', 'last release'], rows);
  });
}

const suspects = (found: readonly Found[]) => found.filter((one) => isSlower(slowdown(one))).map(({ work }) => work);

async function bench(): Promise<void> {
  const release = releaseBuild();
  const machine = `${cpus()[0]?.model}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`;
  const circumstances = `${machine}, Node ${process.version}, ${day}; ${rounds} rounds of ${requests} requests.`;
  const found = await measure(release, values.only.split(','));
  const started = await starts(release);
  console.log(`\n${started}\n\n${circumstances}`);
  const text = `\n${[circumstances, costs(found), started].join('\n\n')}\n`;
  const written = readFileSync(page, 'utf8').replace(/(?<=<!-- bench: latest -->\n).*(?=\n<!-- \/bench)/s, () => text);
  if (values.write) writeFileSync(page, written);
  // A build counts as slower only if a second measurement confirms it.
  const slow = suspects(found);
  if (slow.length > 0 && suspects(await measure(release, slow)).length > 0) process.exitCode = 1;
}

const head = () => execFileSync('git', ['-C', root, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
if (values.keep) writeFileSync(RELEASE_FILE, `${JSON.stringify({ commit: head(), date: day }, null, 2)}\n`);
else await bench();
