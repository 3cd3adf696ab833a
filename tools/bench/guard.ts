import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { withLifetime } from '../scripts/lifetime.ts';
import { root } from '../scripts/package/run.ts';
import { isSlower, median, ratios, spread, table } from './figures.ts';
import { measure, OTHERS, REQUESTS, startFloor, startService, startUpstream, type Turn } from './load.ts';

/** Measures this build against the floor and the last release; `tools/bench/README.md` says how to read it and how it judges. */

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    /** Writes the tables into `tools/bench/README.md`. */
    write: { type: 'boolean', default: false },
    /** Records the current commit as the last release. */
    keep: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
/** Rounds of one set of processes: V8 may by chance optimize one process better than another. */
const ROUNDS_OF_SET = 5;
const RELEASE_FILE = join(root, 'tools/bench/release.json');
const PAGE = join(root, 'tools/bench/README.md');
const day = new Date().toISOString().slice(0, 10);
const own = join(root, 'dist');

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

/** The turns of the floor, the last release and this build, by the work that they do. */
type Found = Readonly<Record<string, Turn[][]>>;

const all = (turns: readonly Turn[] = [], key: keyof Turn) => turns.map((turn) => turn[key]);
const slowdown = ([, release, own]: Turn[][]) => ratios(all(own, 'cpu'), all(release, 'cpu'));

async function measureAll(release: string): Promise<Found> {
  const found: Found = { encoded: [[], [], []], raw: [[], [], []], cached: [[], [], []] };
  for (let done = 0; done < rounds; done += ROUNDS_OF_SET)
    await withLifetime(async (lifetime) => {
      const upstream = await startUpstream(lifetime);
      const floor = await startFloor(lifetime, upstream);
      const services = [release, own].map((dist) => startService(lifetime, upstream, dist));
      const servers = [floor, ...(await Promise.all(services))];
      for (const [work, turns] of Object.entries(found)) {
        const more = await measure(servers, work, Math.min(ROUNDS_OF_SET, rounds - done));
        for (const [i, list] of more.entries()) turns[i]?.push(...list);
      }
    });
  return found;
}

function costs(found: Found): string {
  const header = ['work', 'floor, CPU µs', 'last release', 'this build', 'floor by this', 'this by release'];
  const rows = Object.entries(found).map(([work, turns]) => {
    const [floor, , own] = turns;
    const medians = turns.map((list) => median(all(list, 'cpu')).toFixed(0));
    const speed = [median(all(own, 'perSecond')).toFixed(0), median(all(own, 'p99')).toFixed(0)];
    const byFloor = spread(ratios(all(floor, 'cpu'), all(own, 'cpu')));
    const verdict = isSlower(slowdown(turns)) ? 'slower' : 'as fast';
    return [work, ...medians, byFloor, spread(slowdown(turns)), ...speed, verdict];
  });
  return table([...header, 'requests/s', 'p99 ms', 'verdict'], rows);
}

/** Returns the fastest of five starts, in milliseconds until the service listens. */
async function fastestStart(endpoints: number, dist: string): Promise<string> {
  const times: number[] = [];
  for (let i = 0; i < 5; i++)
    await withLifetime(async (lifetime) => {
      times.push((await startService(lifetime, 'http://127.0.0.1:9', dist, endpoints)).started);
    });
  return Math.min(...times).toFixed(0);
}

async function bench(): Promise<void> {
  const release = releaseBuild();
  execFileSync('taskset', ['-a', '-p', '-c', OTHERS, String(process.pid)]);
  const machine = `${cpus()[0]?.model}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`;
  const circumstances = `${machine}, Node ${process.version}, ${day}; ${rounds} rounds of ${REQUESTS} requests.`;
  const found = await measureAll(release);
  const starts: string[][] = [];
  for (const count of [1, 1000])
    starts.push([`${count}`, await fastestStart(count, own), await fastestStart(count, release)]);
  const started = table(['endpoints: start to listening, ms (best of 5)', 'this build', 'last release'], starts);
  const text = [circumstances, costs(found), started].join('\n\n');
  console.log(text);
  const written = readFileSync(PAGE, 'utf8').replace(
    /(?<=<!-- bench: latest -->\n).*(?=\n<!-- \/bench)/s,
    () => `\n${text}\n`,
  );
  if (values.write) writeFileSync(PAGE, written);
  if (Object.values(found).some((turns) => isSlower(slowdown(turns)))) process.exitCode = 1;
}

const head = () => execFileSync('git', ['-C', root, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
if (values.keep) writeFileSync(RELEASE_FILE, `${JSON.stringify({ commit: head(), date: day }, null, 2)}\n`);
else await bench();
