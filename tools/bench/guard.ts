import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { circumstances, isSlower, median, ratios, spread, table } from './figures.ts';
import { Bench, configOf, print } from './load.ts';
import { presentCommit, RELEASE_FILE, readRelease, releaseBuild } from './release.ts';

/** Says whether this build takes more CPU for a request than the last release. `tools/bench/README.md` says how it judges. */

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '20' },
    only: { type: 'string', default: 'encoded,raw,cached' },
    /** Of processes, which share the rounds. */
    sets: { type: 'string', default: '4' },
    /** Writes this commit and its figures into `tools/bench/release.json`. */
    keep: { type: 'boolean', default: false },
  },
});
const options = { requests: Number(values.requests), rounds: Number(values.rounds) };
const sets = Number(values.sets);
const KINDS = ['release', 'own', 'floor'] as const;

/** CPU for a request of each round. */
type Found = { readonly work: string } & Readonly<Record<(typeof KINDS)[number], readonly number[]>>;

const cost = ({ own, release }: Found) => ratios(own, release);

/** The rounds of one set of processes. */
function measureSet(release: string, works: readonly string[], isReversed: boolean): Promise<Found[]> {
  return Bench.run(async (bench, upstream) => {
    const config = configOf(upstream);
    const servers = await Promise.all([
      bench.service('release', config, release),
      bench.service('own', config),
      bench.floor(upstream),
    ]);
    const found: Found[] = [];
    for (const work of works) {
      const group = servers.map((server, i) => ({ name: KINDS[i] ?? '', server, work }));
      const rounds = Math.ceil(options.rounds / sets);
      const turns = await bench.measure(isReversed ? group.toReversed() : group, { ...options, rounds });
      const cpu = (of: string) => turns.find(({ name }) => name === of)?.turns.map((turn) => turn.cpu) ?? [];
      found.push({ work, release: cpu('release'), own: cpu('own'), floor: cpu('floor') });
    }
    return found;
  });
}

/** New processes for each set: what V8 happened to make of one process would be taken for the speed of the code. */
async function measure(release: string, works: readonly string[]): Promise<Found[]> {
  const each: Found[][] = [];
  for (let set = 0; set < sets; set++) each.push(await measureSet(release, works, set % 2 === 1));
  const found = works.map((work, i) => {
    const all = (kind: (typeof KINDS)[number]) => each.flatMap((set) => set[i]?.[kind] ?? []);
    return { work, release: all('release'), own: all('own'), floor: all('floor') };
  });
  report(found);
  return found;
}

function report(found: readonly Found[]): void {
  const { figures } = readRelease();
  const rows = found.map((one) => [
    one.work,
    median(one.release).toFixed(0),
    median(one.own).toFixed(0),
    spread(cost(one)),
    spread(ratios(one.floor, one.release)),
    figures[one.work]?.toFixed(2) ?? '',
    spread(ratios(one.floor, one.own)),
    isSlower(cost(one)) ? 'slower' : 'as fast',
  ]);
  const header = ['work', 'release, CPU µs', 'this build', 'this by release', 'floor by release', 'as kept'];
  print(`\n${table([...header, 'floor by this', 'verdict'], rows)}`);
}

const suspects = (found: readonly Found[]) => found.filter((one) => isSlower(cost(one))).map(({ work }) => work);

async function keep(commit: string): Promise<void> {
  const found = await measure(releaseBuild(), values.only.split(','));
  const figures = found.map((one) => [one.work, Number(median(ratios(one.floor, one.own)).toFixed(3))]);
  const date = new Date().toISOString().slice(0, 10);
  const text = JSON.stringify({ commit, date, figures: Object.fromEntries(figures) }, null, 2);
  await writeFile(RELEASE_FILE, `${text}\n`);
}

/** Slower twice is slower. */
async function guard(): Promise<boolean> {
  const first = suspects(await measure(releaseBuild(), values.only.split(',')));
  return first.length > 0 && suspects(await measure(releaseBuild(), first)).length > 0;
}

print(circumstances(options));
if (values.keep) await keep(presentCommit());
else process.exitCode = (await guard()) ? 1 : 0;
