import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Prints what `node --test` is to run: `*.test.ts` in groups of their folder, since a process that loads the service spends
 * more on that than on its tests; or with the argument `slow` `*.slow.ts`, which take long, flood, or measure memory; or with
 * a number the files whose names follow, in that many groups.
 */

/** They change what node, or the process, has; or they take a minute and more of a processor. They begin. */
const ALONE = [
  'fhe/encryption.slow.ts',
  'import/corpus.slow.ts',
  'kernel/pipeline-fuzz.slow.ts',
  'contracts/quorum-model.slow.ts',
  'e2e/spans.test.ts',
];

/** What asks how fast the system itself is has the machine to itself: `npm run test:slow` runs it in the end. */
const LAST = ['cli/drain.slow.ts'];

/** What takes longest comes first, so that nothing waits for it in the end. */
const FIRST = { test: ['cli', 'e2e', 'incidents', 'http', 'docs', 'examples', 'explorer', 'config'], slow: ['fhe'] };

/** Files of one process; folders with few files share one. */
const MOST = { test: 40, slow: 5 };
const FEW = 8;

const [, , kind = 'test', ...words] = process.argv;
const named = words.map((word) => word.replace('test/', ''));
const first = FIRST[kind] ?? [];
const folder = new URL(`../../.cache/tests/${kind}/`, import.meta.url);
const found = readdirSync(new URL('..', import.meta.url), { recursive: true })
  .filter((name) => name.endsWith(`.${kind}.ts`) && !LAST.includes(name))
  .sort();
const files = named.length > 0 ? named : found;
const others = files.filter((name) => !ALONE.includes(name));

/** The files of each folder. */
function folders() {
  const found = new Map(first.map((name) => [name, []]));
  for (const file of others) {
    const [name] = file.split('/');
    found.set(name, [...(found.get(name) ?? []), file]);
  }
  return [...found];
}

function groups() {
  const isSmall = ([name, { length }]) => length < FEW && !first.includes(name);
  const small = folders().filter(isSmall);
  const shared = ['others', small.flatMap(([, members]) => members)];
  const large = folders().filter((entry) => !isSmall(entry));
  return [...large.slice(0, first.length), shared, ...large.slice(first.length)].flatMap(([name, members]) =>
    parts(name, members, Math.ceil(members.length / MOST[kind])),
  );
}

function parts(name, members, count) {
  return Array.from({ length: count }, (_, i) => [name, members.filter((__, place) => place % count === i)]);
}

/** Node runs files in the order of their names. */
function write([name, members], index) {
  const file = new URL(`${String(index).padStart(2, '0')}-${name.replaceAll('/', '-')}.mjs`, folder);
  const text = JSON.stringify(members.map((member) => `test/${member}`));
  writeFileSync(file, `import { together } from '../../../test/support/together.mjs';\nawait together(${text});\n`);
  return fileURLToPath(file);
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const alone = ALONE.filter((file) => files.includes(file)).map((file) => [file.replace(/\.\w+\.ts$/, ''), [file]]);
const shared = named.length > 0 ? parts('named', others, Number(kind)) : groups();
console.log([...alone, ...shared].map(write).join('\n'));
