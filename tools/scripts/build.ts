import { cpSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { bundleExplorer } from '../../builtins/explorer/bundle.ts';
import { root, run } from './package/run.ts';
import { type Manifest, PUBLISHED, writePackages } from './packages.ts';
import { bundleProgram, manifest } from './program.ts';

/** Builds `dist/`: a package in JavaScript with types, which runs on plain node and can be packed. */

const dist = join(root, 'dist');

/** Folders for operators and plugin authors, and the pages to which they link. */
const READ = ['docs', 'examples'];
const PAGES = ['SECURITY.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'];

/** Test vectors for implementations in other languages. An image is built without tests, and so without these. */
const VECTORS = 'test/vectors';

/** The files that `plugin new` copies. They are published as TypeScript. */
const TEMPLATE = 'cli/plugin/template';

/** Our declarations refer to koa, whose types are in another package. */
const KOA_TYPES = '@types/koa';

/** Copies a file, or of a folder the files that are needed. */
function copy(path: string, isNeeded = (_file: string) => true): void {
  const filter = (from: string) => statSync(from).isDirectory() || isNeeded(relative(root, from));
  cpSync(join(root, path), join(dist, path), { recursive: true, filter });
}

/** Copies what the compiler leaves out: JavaScript, data, contracts, pages, and the files that stay TypeScript. */
function copyRest(): void {
  const isData = (file: string) => file.endsWith('.json') && !/tsconfig[^/]*\.json$/.test(file);
  const isKept = (file: string) => /\.(?:[cm]?js|d\.mts|sol)$/.test(file) || isData(file) || file.startsWith(TEMPLATE);
  for (const folder of PUBLISHED) copy(folder, isKept);
  for (const path of [...READ, 'README.md', 'LICENSE', ...PAGES]) copy(path);
  if (existsSync(join(root, VECTORS))) copy(VECTORS, (file) => file.endsWith('.json'));
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

rmSync(dist, { recursive: true, force: true });
run(root, join(root, 'node_modules/.bin/tsc'), '-p', 'tools/scripts/tsconfig.build.json');
copyRest();
writeManifest(manifest);
writePackages(dist, join(root, 'tools/packages'), manifest);
// In a source tree the page is bundled when the service starts; a package contains the result.
writeFileSync(join(dist, 'builtins/explorer/page.built.html'), await bundleExplorer());
await bundleProgram(dist, true);
