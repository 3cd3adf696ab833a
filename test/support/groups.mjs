import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { make } from '../../scripts/program.js';

/**
 * Prints what `node --test` is to run: most test files in groups of their folder, since a process that loads the service
 * spends more on that than on its tests. Also makes the program that tests start, lest many of them make it at once.
 */

/** Who waits for long comes first, so that nobody waits for it in the end. They measure memory, or change what node has. */
const ALONE = [
  'cli/watchdog',
  'e2e/connections',
  'cli/drain',
  'e2e/load',
  'e2e/rate-limit-flood',
  'cli/small-heap',
  'cli/endings',
  'cli/verify',
  'cli/identity',
  'fhe/hanging',
  'fhe/queue',
  'fhe/relayer-answers',
  'fhe/relayer-connect',
  'fhe/encryption',
  'explorer/browser',
  'examples/pay',
  'sdk/host-names',
  'sdk/system-resolver',
].map((name) => `test/${name}.test.ts`);

const SIZE = 12;

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = new URL('../../.cache/tests/', import.meta.url);

const files = readdirSync(new URL('..', import.meta.url), { recursive: true })
  .map((file) => `test/${file}`)
  .filter((file) => file.endsWith('.test.ts'))
  .sort();

/** Files by the folder right below `test/`, in groups of about the same size. */
function groups() {
  const rest = files.filter((file) => !ALONE.includes(file));
  return [...byFolder(rest)].flatMap(([name, members]) => {
    const count = Math.ceil(members.length / SIZE);
    return Array.from({ length: count }, (_, i) => ({
      name: `${name}-${i + 1}`,
      members: members.filter((_, place) => place % count === i),
    }));
  });
}

function folderOf(file) {
  return file.split('/').length > 2 ? file.split('/')[1] : 'walls';
}

function byFolder(list) {
  const folders = new Map();
  for (const file of list) folders.set(folderOf(file), [...(folders.get(folderOf(file)) ?? []), file]);
  return folders;
}

function write({ name, members }) {
  const file = fileURLToPath(new URL(`${name}.mjs`, folder));
  const text = `import { together } from '../../test/support/together.mjs';\nawait together(${JSON.stringify(members)});\n`;
  writeFileSync(file, text);
  return relative(root, file);
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const paths = [...ALONE.filter((file) => files.includes(file)), ...groups().map(write)];
await make();
console.log(paths.join('\n'));
