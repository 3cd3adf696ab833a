import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root, run } from './package/run.ts';
import { type Manifest, PUBLISHED, writePackages } from './packages.ts';
import { bundleProgram } from './program.ts';

/** Builds `dist/`: a package in JavaScript with types, which runs on plain node and can be packed. */

const dist = join(root, 'dist');

/** Folders for operators and plugin authors, published without pictures, and the pages to which they link. */
const READ = ['docs', 'examples'];
const PAGES = ['SECURITY.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'];

/** Test vectors for implementations in other languages. An image is built without tests, and so without these. */
const VECTORS = 'test/vectors';

/** The files that `plugin new` copies. They are published as TypeScript. */
const TEMPLATE = 'cli/plugin/template';

/** Our declarations refer to koa, whose types are in another package. */
const KOA_TYPES = '@types/koa';

/** Returns the paths of the files in a folder, relative to `base`. */
function filesIn(base: string, folder: string): string[] {
  return readdirSync(join(base, folder), { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(base, join(entry.parentPath, entry.name)));
}

function copy(file: string): void {
  mkdirSync(dirname(join(dist, file)), { recursive: true });
  cpSync(join(root, file), join(dist, file));
}

/** Copies what the compiler leaves out: JavaScript, data, contracts, pages, and the files that stay TypeScript. */
function copyRest(): void {
  const needed = (file: string) =>
    /\.(?:m?js|d\.mts|sol)$/.test(file) || (/\.json$/.test(file) && !/tsconfig[^/]*\.json$/.test(file));
  for (const file of PUBLISHED.flatMap((folder) => filesIn(root, folder)))
    if (needed(file) || file.startsWith(TEMPLATE)) copy(file);
  for (const file of READ.flatMap((folder) => filesIn(root, folder))) if (!/\.(?:png|svg)$/.test(file)) copy(file);
  for (const file of ['README.md', 'LICENSE', ...PAGES]) copy(file);
  if (existsSync(join(root, VECTORS)))
    for (const file of filesIn(root, VECTORS)) if (file.endsWith('.json')) copy(file);
}

/** Removes pictures from pages, and links to them in brackets. Pictures would make up a third of the package. */
function leaveOutPictures(): void {
  for (const page of ['README.md', ...filesIn(dist, 'docs')].map((file) => join(dist, file))) {
    const shown = readFileSync(page, 'utf8').replace(/^!\[[^\]]*\]\((?!https:)[^)]*\)\n\n?/gm, '');
    writeFileSync(page, shown.replace(/ \((?:\[[^\]]*\]\(images\/[^)]*\)(?:,\s)?)+\)/g, ''));
  }
}

/** Renames `.ts` to `.js` in the specifiers of declarations, where the compiler leaves it. */
function renameInDeclarations(): void {
  const specifier = /(\bfrom |\bimport\(|^import )(['"])(\.{1,2}\/[^'"]+)\.ts\2/gm;
  for (const file of PUBLISHED.flatMap((folder) => filesIn(dist, folder)).filter((name) => name.endsWith('.d.ts')))
    writeFileSync(join(dist, file), readFileSync(join(dist, file), 'utf8').replace(specifier, '$1$2$3.js$2'));
}

/** Returns the built package's export for one of the source: the module in JavaScript, and its types. */
function builtExport(target: Manifest['exports'][string]): Manifest['exports'][string] {
  if (typeof target !== 'string' || !target.endsWith('.ts')) return target;
  return { types: target.replace(/\.ts$/, '.d.ts'), default: target.replace(/\.ts$/, '.js') };
}

function writeManifest(manifest: Manifest): void {
  const { scripts: _, devDependencies: __, workspaces: ___, allowScripts: ____, private: _____, ...kept } = manifest;
  const exports = Object.entries(manifest.exports).map(([name, target]) => [name, builtExport(target)]);
  const built = {
    ...kept,
    exports: Object.fromEntries(exports),
    files: [...PUBLISHED, ...READ, ...PAGES, VECTORS, 'program'],
    dependencies: { ...manifest.dependencies, [KOA_TYPES]: manifest.devDependencies[KOA_TYPES] },
  };
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(built, null, 2)}\n`);
}

/** Bundles the explorer's page. In a source tree that is done when the service starts; a package contains the result. */
async function bundlePage(): Promise<void> {
  const folder = 'builtins/explorer';
  if (!existsSync(join(root, folder, 'bundle.ts'))) return;
  const { bundleExplorer } = await import('../../builtins/explorer/bundle.ts');
  writeFileSync(join(dist, folder, 'page.built.html'), await bundleExplorer());
}

const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
rmSync(dist, { recursive: true, force: true });
run(root, join(root, 'node_modules/.bin/tsc'), '-p', 'tools/scripts/tsconfig.build.json');
copyRest();
leaveOutPictures();
renameInDeclarations();
writeManifest(manifest);
writePackages(dist, join(root, 'tools/packages'), manifest);
await bundlePage();
await bundleProgram(dist, true);
