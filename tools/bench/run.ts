import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { circumstances, comparison, type Turns, table } from './figures.ts';
import { Bench, configOf, dist, print, root } from './load.ts';
import { releaseBuild } from './release.ts';

/**
 * Measures the service against the floor and the last release, in the same run. `tools/bench/README.md` says how to read what
 * it prints.
 */

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '3000' },
    rounds: { type: 'string', default: '15' },
    /** Writes the tables into `tools/bench/README.md`. */
    write: { type: 'boolean', default: false },
  },
});
const options = { requests: Number(values.requests), rounds: Number(values.rounds) };

const groups = await Bench.run(async (bench, upstream) => {
  const floor = await bench.floor(upstream);
  const release = await bench.service('release', configOf(upstream), releaseBuild());
  const own = await bench.service('own', configOf(upstream));
  const found: Turns[][] = [];
  for (const work of ['encoded', 'raw', 'cached']) {
    const group = [
      { name: `${work}: floor`, server: floor, work },
      { name: `${work}: last release`, server: release, work },
      { name: `${work}: this build`, server: own, work },
    ];
    found.push(await bench.measure(group, options));
  }
  return found;
});

const starts = await Bench.run(async (bench, upstream) => {
  const rows: (string | number)[][] = [];
  for (const count of [1, 1000]) {
    const time = async (build: string) => {
      const times: number[] = [];
      for (let i = 0; i < 5; i++) {
        const server = await bench.service('starting', configOf(upstream, count), build);
        times.push(server.started);
        await server.stop();
      }
      return Math.min(...times).toFixed(0);
    };
    rows.push([`${count} endpoints`, await time(dist), await time(releaseBuild())]);
  }
  return table(['start to listening, ms (best of 5)', 'this build', 'last release'], rows);
});

const text = [circumstances(options), comparison(groups), starts].join('\n\n');
print(text);
if (values.write) {
  const file = join(root, 'tools/bench/README.md');
  const page = await readFile(file, 'utf8');
  await writeFile(
    file,
    page.replace(/(?<=<!-- bench: latest -->\n).*(?=\n<!-- \/bench)/s, () => `\n${text}\n`),
  );
}
