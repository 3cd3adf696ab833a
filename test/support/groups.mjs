import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { program } from '../../scripts/program.js';

/**
 * Prints what `node --test` is to run: most test files in groups of their folder, since a process that loads the service
 * spends more on that than on its tests. Also makes the program that tests start, lest many of them make it at once.
 */

/** They measure memory, change what node has, or take long: these come first, so that nothing waits for them in the end. */
const ALONE = [
  'cli/watchdog',
  'e2e/connections',
  'cli/drain',
  'e2e/load',
  'e2e/rate-limit-flood',
  'cli/small-heap',
  'cli/endings',
  'fhe/hanging',
  'fhe/queue',
  'fhe/relayer-answers',
  'fhe/relayer-connect',
  'fhe/encryption',
  'explorer/browser',
  'examples/dockerfile',
  'examples/pay',
  'sdk/host-names',
  'sdk/system-resolver',
].map((name) => `${name}.test.ts`);

const SIZE = 12;

const folder = new URL('../../.cache/tests/', import.meta.url);

function groups() {
  const files = readdirSync(new URL('..', import.meta.url), { recursive: true }).sort();
  const folders = new Map();
  for (const file of files.filter((name) => name.endsWith('.test.ts') && !ALONE.includes(name))) {
    const [name] = file.split('/');
    folders.set(name, [...(folders.get(name) ?? []), file]);
  }
  return [...folders].flatMap(([name, members]) => {
    const count = Math.ceil(members.length / SIZE);
    return Array.from({ length: count }, (_, i) => [name, members.filter((__, place) => place % count === i)]);
  });
}

/** Node runs files in the order of their names. */
function write([name, members], index) {
  const label = name.replace(/\.test\.ts$/, '').replaceAll('/', '-');
  const file = new URL(`${String(index).padStart(2, '0')}-${label}.mjs`, folder);
  const files = JSON.stringify(members.map((member) => `test/${member}`));
  writeFileSync(file, `import { together } from '../../test/support/together.mjs';\nawait together(${files});\n`);
  return fileURLToPath(file);
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const alone = ALONE.map((file) => [file, [file]]);
const paths = [...alone, ...groups()].map(write);
await program();
console.log(paths.join('\n'));
