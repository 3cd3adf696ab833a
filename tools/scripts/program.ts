import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

/**
 * Bundles the program into few files. To open some 1,500 modules one by one, libraries included, takes three times as long.
 * `npm start`, `npm run cli` and the tests run the files that this writes into `.cache/built`.
 */

const root = fileURLToPath(new URL('../../', import.meta.url));
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Packages that stay outside, as optional ones do: those with native parts, and libraries that no start waits for. */
const EXTERNAL = ['esbuild', 'lmdb', 'tsx', 'ethers', 'koa-body', 'prom-client'];
/** Bundled CommonJS packages call `require` for node's own modules. */
const REQUIRE = `import { createRequire as from } from 'node:module'; const require = from(import.meta.url);`;
const SOURCE_MAPS = 'process.setSourceMapsEnabled(true);';

/** The modules that others may import, by the names under which package.json exports them. */
const exported = Object.entries(manifest.exports).filter(([, target]) => /^[^*]*\.ts$/.test(String(target)));
/** Returns the name of the file by which the program exports what a module of the source does. */
const fileOf = (module: string) => relative('.', module).replaceAll('/', '-').replace(/\.ts$/, '.js');

/**
 * Returns a file for each of these modules. It exports only the names of that module: otherwise a plugin could take any name
 * from any of them, which works in the bundled program alone.
 */
async function exportingFiles(): Promise<[name: string, text: string][]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: exported.map(([, file]) => String(file)),
    outdir: '.',
    bundle: true,
    packages: 'external',
    format: 'esm',
    logLevel: 'silent',
    metafile: true,
    write: false,
  });
  return Object.values(metafile.outputs).map(({ entryPoint = '', exports }) => [
    fileOf(entryPoint),
    `export { ${exports.join(', ')} } from './stdin.js';\n`,
  ]);
}

/**
 * Replaces `import.meta.url` by the URL of the unbundled module, so that modules find the files beside that. The table of media
 * types is empty: it takes longer to load than the rest of koa, and serves methods of its context that the service never calls.
 */
const locate = (modules: string, extension: string): Plugin => ({
  name: 'locate',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$|mime-db\/db\.json$/ }, async ({ path }) => {
      if (path.endsWith('.json')) return { contents: '{}', loader: 'json' };
      const text = await readFile(path, 'utf8');
      const place = `${modules}/${relative(root, path).replace(/\.ts$/, extension)}`;
      const url = `new URL('${place}', import.meta.url).href`;
      return { contents: text.replaceAll('import.meta.url', url), loader: 'ts' };
    }),
});

/** Bundles the program. @param base the folder of a built package, or one for starts from source. */
export async function bundleProgram(base: string, isPackage: boolean): Promise<void> {
  const folder = join(base, 'program');
  const exporting = exportingFiles();
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['cli/main.ts'],
    // One module exports what all of them do: each further entry would cut what a start loads into more files.
    stdin: { contents: exported.map(([, file]) => `export * from '${file}';`).join(''), resolveDir: root },
    logOverride: { 'ambiguous-reexport': 'error' },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: [...Object.keys(manifest.peerDependencies), ...EXTERNAL],
    inject: [fileURLToPath(new URL('globals.ts', import.meta.url))],
    banner: { js: isPackage ? REQUIRE : REQUIRE + SOURCE_MAPS },
    sourcemap: !isPackage,
    sourcesContent: false,
    logLevel: 'silent',
    plugins: [isPackage ? locate('..', '.js') : locate(relative(folder, root), '.ts')],
    write: false,
  });
  // Plugins that import the package by its name get the modules of the running program.
  const exports = Object.fromEntries(exported.map(([name, file]) => [name, `./${fileOf(String(file))}`]));
  const itself = JSON.stringify({ name: manifest.name, type: 'module', exports });
  mkdirSync(folder, { recursive: true });
  const bundled = outputFiles.map(({ path, text }): [string, string] => [basename(path), text]);
  const files = new Map([...bundled, ...(await exporting), ['package.json', itself]]);
  // Another process may start the program meanwhile, so unchanged files are not written again.
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
