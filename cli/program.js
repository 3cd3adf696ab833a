import { hash } from 'node:crypto';
import {
  accessSync,
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
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * The program in few files, for starts from source. Opening its modules and those of its libraries one by one takes three times
 * as long: they are some 1,500. It is made again when a source or the installed packages have changed. A package holds it ready-made.
 */

const root = fileURLToPath(new URL('../', import.meta.url));
const programs = join(root, '/.cache/program');

/** Where the sources are, and what else a program depends on: npm, pnpm and yarn note there what they have installed. */
const FOLDERS = ['builtins', 'cli', 'config', 'http', 'kernel', 'lib', 'plugins-sdk', 'service', 'verify'];
const FILES = [
  'package.json',
  'node_modules',
  'node_modules/.package-lock.json',
  'node_modules/.modules.yaml',
  'node_modules/.yarn-state.yml',
];

/** Libraries that no start of a package waits for. */
const LATER = ['ethers', 'koa-body', 'prom-client'];

const HOUR_MS = 3_600_000;
/** A program that still runs may import the rest of its files yet. */
const KEPT = 2;

const manifest = () => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** What may be asked for from outside: modules by the names under which package.json exports them. */
const exported = () => Object.entries(manifest().exports).filter(([, target]) => /^[^*]*\.ts$/.test(target));

const nameOf = (entry) => entry.replace(/^\.\//, '').replaceAll('/', '-');

/** Changes with every input, and with the folder that they are in: the program knows where its source lies. */
function stateOfInputs() {
  const folders = FOLDERS.map((name) => join(root, name)).filter((folder) => existsSync(folder));
  const entries = folders.flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }));
  const sources = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const stamps = [...sources, ...FILES.map((file) => join(root, file))].map((file) => {
    const { mtimeMs, ctimeMs, size } = statSync(file, { throwIfNoEntry: false }) ?? {};
    return `${file} ${mtimeMs} ${ctimeMs} ${size}`;
  });
  return hash('sha256', stamps.join());
}

/** Modules find the files beside what they were: their source, or what the compiler made of it. */
const locate = (urlOf) => ({
  name: 'locate',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return { contents: text.replaceAll('import.meta.url', urlOf(path)), loader: 'ts' };
    });
  },
});

async function bundle(outdir, urlOf, { external = [], ...options }) {
  const { build } = await import('esbuild');
  const { name, peerDependencies } = manifest();
  await build({
    absWorkingDir: root,
    entryPoints: [['main', 'cli/main.ts'], ...exported()].map(([entry, file]) => ({ in: file, out: nameOf(entry) })),
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Packages that an operator installs, if any, and one with a native part are found where they are.
    external: ['esbuild', 'lmdb', 'tsx', ...Object.keys(peerDependencies), ...external],
    // Packages in CommonJS require what node has.
    banner: { js: `import { createRequire as from } from 'node:module'; const require = from(import.meta.url);` },
    logLevel: 'silent',
    plugins: [locate(urlOf)],
    ...options,
  });
  // Plugins get the modules of the program that runs, which find them by the name of the package.
  const exports = Object.fromEntries(exported().map(([entry]) => [entry, `./${nameOf(entry)}.js`]));
  writeFileSync(join(outdir, 'package.json'), JSON.stringify({ name, type: 'module', exports }));
}

/** Puts the program into few files of a package, in a folder beside those of its modules. */
export function bundlePackage(outdir) {
  const moduleOf = (path) => `../${relative(root, path).replace(/\.ts$/, '.js')}`;
  return bundle(outdir, (path) => `new URL('${moduleOf(path)}', import.meta.url).href`, { external: LATER });
}

/** Another start may make the same program at the same time: whichever is complete first is kept. */
async function make(folder) {
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  await bundle(draft, (path) => JSON.stringify(pathToFileURL(path).href), { sourcemap: true, sourcesContent: false });
  try {
    renameSync(draft, folder);
  } catch {
    rmSync(draft, { recursive: true });
    accessSync(join(folder, 'main.js'));
  }
  const madeAt = (name) => statSync(join(programs, name)).mtimeMs;
  for (const name of readdirSync(programs)
    .sort((a, b) => madeAt(b) - madeAt(a))
    .slice(KEPT))
    if (madeAt(name) < Date.now() - HOUR_MS) rmSync(join(programs, name), { recursive: true });
}

/** The URL of the program's main module. @throws Error when there is none and none can be made */
export async function program() {
  const folder = join(programs, stateOfInputs());
  const main = join(folder, 'main.js');
  try {
    accessSync(main);
  } catch {
    await make(folder);
  }
  return pathToFileURL(main).href;
}
