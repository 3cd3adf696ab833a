import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * The program in few files, for starts from source: opening its 230 modules and the 1,300 of its libraries one by one takes
 * three times as long. It is made again when a source or the installed packages have changed since.
 */

const root = new URL('../', import.meta.url);
const cache = new URL('.cache/program/', root);
const list = new URL('current.json', cache);

/** What may be asked for from outside, by the name under which package.json exports it; the rest is the program's own. */
const ENTRIES = {
  main: 'cli/main.ts',
  './plugins-sdk': 'plugins-sdk/index.ts',
  './plugins-sdk/testing': 'plugins-sdk/harness.ts',
  './verify': 'verify/index.ts',
};

/** Inputs of every build that the bundler does not list. */
const ALWAYS = ['scripts/program.js', 'package.json', 'node_modules/.package-lock.json'];

const HOUR = 3_600_000;

const fileOf = (name) => `${name.replace(/^\.\//, '').replaceAll('/', '-')}.js`;

function stampOf(file) {
  const { mtimeMs, size } = statSync(new URL(file, root), { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${size}`;
}

/** What was made last; `undefined` if there is nothing. */
function made() {
  try {
    return JSON.parse(readFileSync(list, 'utf8'));
  } catch {
    return undefined;
  }
}

const isFresh = ({ folder, stamps }) =>
  stampOf(`.cache/program/${folder}/main.js`) !== stampOf('none') &&
  Object.entries(stamps).every(([file, stamp]) => stampOf(file) === stamp);

/** Modules find the files beside their source. */
const asInSource = {
  name: 'as-in-source',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const url = JSON.stringify(pathToFileURL(path).href);
      return { contents: text.replaceAll('import.meta.url', url), loader: 'ts' };
    });
  },
};

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** The numbers of a segment of a source map. https://tc39.es/ecma426/#sec-base64-vlq */
function decode(segment) {
  const numbers = [];
  let bits = 0;
  let shift = 0;
  for (const digit of segment) {
    const value = DIGITS.indexOf(digit);
    bits += (value & 31) << shift;
    shift += 5;
    if (value < 32) {
      numbers.push(bits & 1 ? -(bits >> 1) : bits >> 1);
      bits = 0;
      shift = 0;
    }
  }
  return numbers;
}

function encode(number) {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1;
  let text = '';
  do {
    text += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)];
    rest >>= 5;
  } while (rest > 0);
  return text;
}

/** A source map of the program's own modules only: those of the libraries are five times as large, and kept in memory. */
function ownMap({ version, sources, mappings }) {
  const own = sources.filter((source) => !source.includes('/node_modules/') && !source.includes('/verify/'));
  const position = sources.map((source) => own.indexOf(source));
  const read = [0, 0, 0];
  const written = [0, 0, 0];
  const lines = mappings.split(';').map((line) => {
    let column = 0;
    let writtenColumn = 0;
    const segments = line.split(',').flatMap((segment) => {
      const [step = 0, ...steps] = decode(segment);
      column += step;
      for (const i of read.keys()) read[i] += steps[i] ?? 0;
      const source = position[read[0]] ?? -1;
      if (steps.length === 0 || source < 0) return [];
      const place = [source, read[1], read[2]];
      const text = [column - writtenColumn, ...place.map((value, i) => value - written[i])].map(encode).join('');
      writtenColumn = column;
      for (const [i, value] of place.entries()) written[i] = value;
      return [text];
    });
    return segments.join(',');
  });
  return { version, sources: own, names: [], mappings: lines.join(';') };
}

async function bundle(outdir) {
  const { build } = await import('esbuild');
  const { metafile, outputFiles } = await build({
    absWorkingDir: fileURLToPath(root),
    entryPoints: Object.entries(ENTRIES).map(([name, file]) => ({ in: file, out: fileOf(name).replace(/\.js$/, '') })),
    outdir: fileURLToPath(outdir),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['esbuild', 'tsx'],
    // Packages in CommonJS require what node has.
    banner: { js: `import { createRequire as from } from 'node:module'; const require = from(import.meta.url);` },
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    write: false,
    logLevel: 'silent',
    plugins: [asInSource],
  });
  for (const { path, text } of outputFiles)
    writeFileSync(path, path.endsWith('.map') ? JSON.stringify(ownMap(JSON.parse(text))) : text);
  return Object.keys(metafile.inputs).filter((file) => !file.startsWith('node_modules/'));
}

/** Plugins get the modules of the program that runs, which find them by the name of the package. */
function writeManifest(folder) {
  const { name } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  const exports = Object.fromEntries(Object.keys(ENTRIES).map((entry) => [entry, `./${fileOf(entry)}`]));
  delete exports.main;
  writeFileSync(new URL('package.json', folder), JSON.stringify({ name, type: 'module', exports }));
}

/** Makes the program anew. What was made before, or by others just now, stays: whoever runs it may import the rest of it yet. */
export async function make() {
  const before = made()?.folder;
  const folder = `${Date.now()}-${process.pid}`;
  const stamps = Object.fromEntries(ALWAYS.map((file) => [file, stampOf(file)]));
  const home = new URL(`${folder}/`, cache);
  mkdirSync(home, { recursive: true });
  for (const file of await bundle(home)) stamps[file] = stampOf(file);
  writeManifest(home);
  const draft = new URL(`${folder}.json`, cache);
  writeFileSync(draft, JSON.stringify({ folder, stamps }));
  renameSync(draft, list);
  for (const name of readdirSync(cache))
    if (name !== before && Number.parseInt(name, 10) < Date.now() - HOUR)
      rmSync(new URL(name, cache), { recursive: true });
  return folder;
}

/** The URL of the program's main module. @throws Error when there is none and none can be made */
export async function program() {
  const current = made();
  const folder = current !== undefined && isFresh(current) ? current.folder : await make();
  return new URL(`${folder}/main.js`, cache).href;
}
