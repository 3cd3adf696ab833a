import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { mapOf } from './source-map.js';

/**
 * The program in few files, for starts from source: opening its 230 modules and the 1,300 of its libraries one by one takes
 * three times as long. It is made again when a source or the installed packages have changed since. A package holds it ready-made.
 */

const root = new URL('../', import.meta.url);
const cache = new URL('.cache/program/', root);
const list = new URL('current.json', cache);

/** What may be asked for from outside, by the name under which package.json exports it; the rest is the program's own. */
const ENTRIES = {
  main: 'cli/main.ts',
  './plugins-sdk': 'plugins-sdk/index.ts',
  './plugins-sdk/testing': 'cli/testing.ts',
  './verify': 'verify/index.ts',
};

/** Inputs of every build that the bundler does not list. */
const ALWAYS = ['scripts/program.js', 'scripts/source-map.js', 'package.json', 'node_modules/.package-lock.json'];

const HOUR = 3_600_000;
/** Milliseconds by which the clock of the files may be behind. */
const CLOCK_STEP = 20;

const manifest = () => JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
const fileOf = (name) => `${name.replace(/^\.\//, '').replaceAll('/', '-')}.js`;

function stampOf(file) {
  const { mtimeMs, ctimeMs, size } = statSync(new URL(file, root), { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${ctimeMs} ${size}`;
}

/** What was made last; `undefined` if there is nothing. */
function made() {
  try {
    return JSON.parse(readFileSync(list, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Files that were damaged or are somebody else's are as good as none. */
function isWhole(folder, sizes) {
  try {
    return Object.entries(sizes).every(([file, size]) => {
      const url = new URL(`${folder}/${file}`, cache);
      accessSync(url, constants.R_OK);
      return statSync(url).size === size;
    });
  } catch {
    return false;
  }
}

/** A tree that was moved is none that this was made for: the program knows where its source lies. */
const isFresh = ({ folder, home, stamps, sizes }) =>
  home === root.href &&
  sizes !== undefined &&
  isWhole(folder, sizes) &&
  Object.entries(stamps).every(([file, stamp]) => stampOf(file) === stamp);

/** Modules find the files beside what they were: their source, or what the compiler made of it. */
const at = (urlOf) => ({
  name: 'at',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return { contents: text.replaceAll('import.meta.url', urlOf(path)), loader: 'ts' };
    });
  },
});

/** The maps of libraries are five times as large as the others, and kept in memory; verify/ is not what coverage is of. */
const isOwn = (source) => !/\/(?:node_modules|verify)\//.test(source);

/** What has nothing of the program's own gets another name: coverage is of files that end in `.js`. */
function write(files) {
  const maps = files.filter(({ path }) => path.endsWith('.map'));
  const own = new Map(maps.map(({ path, text }) => [path, mapOf(JSON.parse(text), isOwn)]));
  const foreign = [...own].flatMap(([path, { sources }]) => (sources.length > 0 ? [] : [basename(path, '.js.map')]));
  const renamed = (text) => foreign.reduce((all, name) => all.replaceAll(`/${name}.js`, `/${name}.mjs`), text);
  for (const { path, text } of files) {
    const map = own.get(path);
    writeFileSync(renamed(path), map === undefined ? renamed(text) : JSON.stringify(map));
  }
}

async function bundle(outdir, urlOf, { external = [], ...options }) {
  const { build } = await import('esbuild');
  return build({
    absWorkingDir: fileURLToPath(root),
    entryPoints: Object.entries(ENTRIES).map(([name, file]) => ({ in: file, out: fileOf(name).replace(/\.js$/, '') })),
    outdir: fileURLToPath(outdir),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Packages that an operator installs, if any, are found where they are.
    external: ['esbuild', 'tsx', ...Object.keys(manifest().peerDependencies), ...external],
    // Packages in CommonJS require what node has.
    banner: { js: `import { createRequire as from } from 'node:module'; const require = from(import.meta.url);` },
    logLevel: 'silent',
    plugins: [at(urlOf)],
    ...options,
  });
}

/** @returns the sources. */
async function bundleSource(outdir) {
  const { metafile, outputFiles } = await bundle(outdir, (path) => JSON.stringify(pathToFileURL(path).href), {
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    write: false,
  });
  write(outputFiles);
  return Object.keys(metafile.inputs).filter((file) => !file.startsWith('node_modules/'));
}

/** Libraries that no start waits for. */
const LATER = ['cac', 'ethers', 'koa-body', 'prom-client'];

/** Puts the program into few files of a package, in a folder beside those of its modules. */
export async function bundlePackage(outdir) {
  const urlOf = (path) => {
    const module = relative(fileURLToPath(root), path).replace(/\.ts$/, '.js');
    return `new URL('../${module}', import.meta.url).href`;
  };
  await bundle(outdir, urlOf, { external: LATER });
  writeManifest(outdir);
}

/** Plugins get the modules of the program that runs, which find them by the name of the package. */
function writeManifest(folder) {
  const { name } = manifest();
  const { main: _, ...others } = ENTRIES;
  const exports = Object.fromEntries(
    Object.keys(others).map((entry) => {
      const file = fileOf(entry);
      return [entry, `./${existsSync(new URL(file, folder)) ? file : file.replace(/js$/, 'mjs')}`];
    }),
  );
  writeFileSync(new URL('package.json', folder), JSON.stringify({ name, type: 'module', exports }));
}

/** Makes the program anew. What was made before, or by others just now, stays: whoever runs it may import the rest of it yet. */
async function make() {
  const before = made()?.folder;
  const folder = `${Date.now()}-${process.pid}`;
  const began = Date.now() - CLOCK_STEP;
  const stamps = {};
  const place = new URL(`${folder}/`, cache);
  mkdirSync(place, { recursive: true });
  for (const file of [...ALWAYS, ...(await bundleSource(place))]) {
    const { ctimeMs = 0 } = statSync(new URL(file, root), { throwIfNoEntry: false }) ?? {};
    // What was changed meanwhile may be in the bundle or not: the next start makes another one.
    stamps[file] = ctimeMs < began ? stampOf(file) : 'changed';
  }
  writeManifest(place);
  const sizes = Object.fromEntries(
    readdirSync(place)
      .filter((file) => /\.m?js$|^package\.json$/.test(file))
      .map((file) => [file, statSync(new URL(file, place)).size]),
  );
  const draft = new URL(`${folder}.json`, cache);
  writeFileSync(draft, JSON.stringify({ folder, home: root.href, stamps, sizes }));
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
