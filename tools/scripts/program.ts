import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

/**
 * Puts the program into few files: to open its modules and those of its libraries one by one, some 1,500, takes three times as long.
 * `npm start`, `npm run cli` and the tests run those that this writes into `.cache/built`.
 */

const root = fileURLToPath(new URL('../../', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Packages that an operator installs, if any; one with a native part; and libraries that no start waits for. */
const EXTERNAL = [
  ...Object.keys(manifest.peerDependencies),
  ...['esbuild', 'lmdb', 'tsx'],
  ...['ethers', 'koa-body', 'prom-client'],
];
/** Packages in CommonJS require what node has. */
const REQUIRE = `import { createRequire as from } from 'node:module'; const require = from(import.meta.url);`;
const SOURCE_MAPS = 'process.setSourceMapsEnabled(true);';

/** What may be asked for from outside: modules by the names under which package.json exports them. */
const exported = Object.entries(manifest.exports).filter(([, target]) => /^[^*]*\.ts$/.test(String(target)));
const fileOf = (name: string) => name.replace(/^\.\//, '').replaceAll('/', '-');

/** Modules find the files beside what they were: their source, or what the compiler made of it. */
const locate = (modules: string, extension: string): Plugin => ({
  name: 'locate',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const place = `${modules}/${relative(root, path).replace(/\.ts$/, extension)}`;
      const url = `new URL('${place}', import.meta.url).href`;
      return { contents: (await readFile(path, 'utf8')).replaceAll('import.meta.url', url), loader: 'ts' };
    }),
});

/** @param base a package, whose modules lie beside, or a folder for starts from source. */
export async function bundleProgram(base: string, isPackage: boolean): Promise<void> {
  const folder = join(base, 'program');
  const entries = Object.fromEntries([
    ['main', 'cli/main.ts'],
    ...exported.map(([name, file]) => [fileOf(name), file]),
  ]);
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: entries,
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: EXTERNAL,
    banner: { js: isPackage ? REQUIRE : REQUIRE + SOURCE_MAPS },
    sourcemap: !isPackage,
    sourcesContent: false,
    logLevel: 'silent',
    plugins: [isPackage ? locate('..', '.js') : locate(relative(folder, root), '.ts')],
    write: false,
  });
  // Plugins get the modules of the program that runs, which find them by the name of the package.
  const exports = Object.fromEntries(exported.map(([name]) => [name, `./${fileOf(name)}.js`]));
  const itself = JSON.stringify({ name: manifest.name, type: 'module', exports });
  mkdirSync(folder, { recursive: true });
  const files = new Map(outputFiles.map(({ path, text }) => [basename(path), text])).set('package.json', itself);
  // Others may start it meanwhile: what has not changed is left alone.
  for (const [name, text] of files) {
    const path = join(folder, name);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
  }
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name), { recursive: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = join(root, '.cache/built');
  await bundleProgram(built, false);
  cpSync(join(root, 'cli/bin.js'), join(built, 'cli/bin.js'));
}
