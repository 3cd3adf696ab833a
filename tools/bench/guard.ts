import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measuredConfig } from './configs.ts';
import { differences, readProfile } from './profile.ts';
import { profileOf } from './profiled.ts';
import { presentCommit, RELEASE_FILE, readRelease, releaseBuild } from './release.ts';
import { Bench, dist, type Measured, print, readRounds, roundOptions, SERVER } from './rounds.ts';
import { median, ratios, spreadOf, textOfSpread } from './statistics.ts';
import { circumstances, table } from './table.ts';
import { isSlower, LIMIT } from './verdict.ts';

/** Says whether this build takes more CPU for a request than the last release. `tools/bench/README.md` says how it judges. */

const { values } = parseArgs({
  options: {
    ...roundOptions(2000, 20),
    only: { type: 'string', default: 'encoded,raw,cached' },
    /** Of processes, which share the rounds. */
    sets: { type: 'string', default: '4' },
    /** Writes this commit and its figures into `tools/bench/release.json`. */
    keep: { type: 'boolean', default: false },
    /** Judges this build by itself, so often: none of these verdicts may be red. */
    self: { type: 'string' },
  },
});
const options = readRounds(values);
const sets = Number(values.sets);
const endpoints = values.only.split(',');
const DIFFERENCES = 10;
/** Times the requests of a turn. */
const PROFILED = 5;

/** CPU for a request of each round. */
interface Found {
  readonly endpoint: string;
  readonly release: readonly number[];
  readonly own: readonly number[];
  readonly floor: readonly number[];
}

const cost = ({ own, release }: Found) => ratios(own, release);

/** The rounds of one set of processes. */
function measureSet(release: string, works: readonly string[], isReversed: boolean): Promise<Found[]> {
  return Bench.run({ ...options, rounds: Math.ceil(options.rounds / sets) }, async (bench) => {
    const { url } = await bench.startHelper('upstream');
    const service = async (name: string, build: string) => {
      const server = await bench.startService(name, measuredConfig(url), { build });
      return (work: string): Measured => ({ name, server, url: server.urls[work] ?? '' });
    };
    const floor = async () => {
      const server = await bench.start('floor', SERVER, [join(dist, 'tools/bench/floor.js')], { UPSTREAM: url });
      return (work: string): Measured => ({ name: 'floor', server, url: `${server.url}/${work}` });
    };
    // Nobody needs the floor to compare equal code.
    const starts = [service('release', release), service('own', dist), ...(values.self === undefined ? [floor()] : [])];
    const servers = await Promise.all(starts);
    const found: Found[] = [];
    for (const work of works) {
      const group = (isReversed ? servers.toReversed() : servers).map((measured) => measured(work));
      const turns = await bench.measure(group);
      const cpu = (of: string) => turns.find(({ name }) => name === of)?.turns.map((turn) => turn.cpu) ?? [];
      found.push({ endpoint: work, release: cpu('release'), own: cpu('own'), floor: cpu('floor') });
    }
    return found;
  });
}

/** New processes for each set: what V8 happened to make of one process would be taken for the speed of the code. */
async function measure(release: string, works: readonly string[]): Promise<Found[]> {
  const each: Found[][] = [];
  for (let set = 0; set < sets; set++) each.push(await measureSet(release, works, set % 2 === 1));
  const all = (i: number, key: 'release' | 'own' | 'floor') => each.flatMap((found) => found[i]?.[key] ?? []);
  return works.map((endpoint, i) => {
    return { endpoint, release: all(i, 'release'), own: all(i, 'own'), floor: all(i, 'floor') };
  });
}

function report(found: readonly Found[]): void {
  const { figures } = readRelease();
  const rows = found.map((one) => [
    one.endpoint,
    median(one.release).toFixed(0),
    median(one.own).toFixed(0),
    textOfSpread(spreadOf(cost(one))),
    textOfSpread(spreadOf(ratios(one.floor, one.release))),
    figures[one.endpoint]?.toFixed(2) ?? '',
    textOfSpread(spreadOf(ratios(one.floor, one.own))),
    isSlower(cost(one)) ? 'slower' : 'as fast',
  ]);
  const header = ['work', 'release, CPU µs', 'this build', 'this by release', 'floor by release', 'as kept'];
  print(`\n${table([...header, 'floor by this', 'verdict'], rows)}`);
}

/** Slower twice is slower. @returns what is. */
async function judge(release: string, show: (found: readonly Found[]) => void): Promise<Found[]> {
  const first = await measure(release, endpoints);
  show(first);
  const suspects = first.filter((one) => isSlower(cost(one))).map(({ endpoint }) => endpoint);
  if (suspects.length === 0) return [];
  const second = await measure(release, suspects);
  show(second);
  return second.filter((one) => isSlower(cost(one)));
}

async function explain(release: string, endpoint: string): Promise<void> {
  const requests = PROFILED * options.requests;
  const profile = (build: string) => profileOf({ endpoint, requests, build }, readProfile);
  const found = differences(await profile(release), await profile(dist), requests);
  const rows = found.slice(0, DIFFERENCES).map(({ name, before, now }) => {
    return [name, before.toFixed(1), now.toFixed(1), (now - before).toFixed(1)];
  });
  print(`\n${table([`${endpoint}: function itself, µs a request`, 'release', 'this build', 'more'], rows)}`);
}

async function keep(): Promise<void> {
  const commit = presentCommit();
  const found = await measure(releaseBuild(), endpoints);
  report(found);
  const figures = found.map((one) => [one.endpoint, Number(median(ratios(one.floor, one.own)).toFixed(3))]);
  const date = new Date().toISOString().slice(0, 10);
  const text = JSON.stringify({ commit, date, figures: Object.fromEntries(figures) }, null, 2);
  await writeFile(RELEASE_FILE, `${text}\n`);
}

/** Equal code, time and again. */
async function judgeSelf(times: number): Promise<number> {
  const all: number[] = [];
  let red = 0;
  for (let i = 0; i < times; i++) {
    const show = (found: readonly Found[]) => {
      all.push(...found.map((one) => median(cost(one))));
      print(found.map((one) => `${one.endpoint} ${textOfSpread(spreadOf(cost(one)))}`).join('; '));
    };
    red += (await judge(dist, show)).length === 0 ? 0 : 1;
  }
  print(
    `${times} times equal code: ${red} red, ${all.filter((one) => one > LIMIT).length} of ${all.length} medians above`,
  );
  print(`${LIMIT}; medians from ${Math.min(...all).toFixed(3)} to ${Math.max(...all).toFixed(3)}`);
  return red;
}

async function guard(): Promise<number> {
  const release = releaseBuild();
  const slower = await judge(release, report);
  for (const { endpoint } of slower) await explain(release, endpoint);
  return slower.length;
}

print(circumstances(options));
if (values.keep) await keep();
else process.exitCode = (values.self === undefined ? await guard() : await judgeSelf(Number(values.self))) > 0 ? 1 : 0;
