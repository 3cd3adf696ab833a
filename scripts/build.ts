import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Makes `dist/`: a package of its own, in JavaScript with types, that runs on plain node and can be packed. */

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

/** Folders that are published; `bench` is built beside them, so that benchmarks measure what is published. */
const PUBLISHED = ['kernel', 'builtins', 'plugins-sdk', 'config', 'cli', 'verify'];

interface Manifest {
  readonly exports: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

function compile(): void {
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const { status } = spawnSync(tsc, ['-p', join(root, 'scripts', 'tsconfig.build.json')], { stdio: 'inherit' });
  // The compiler has said why.
  if (status !== 0) process.exit(1);
}

/** The compiler takes no file that is JavaScript already. */
function copyScripts(): void {
  for (const folder of PUBLISHED) {
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (/\.m?js$/.test(file)) cpSync(join(root, folder, file), join(dist, folder, file));
    }
  }
}

/** What a consumer of the package sees under a name: the source's module in JavaScript, and its types. */
function builtExport(target: string): string | { readonly types: string; readonly default: string } {
  if (!target.endsWith('.ts')) return target;
  return { types: target.replace(/\.ts$/, '.d.ts'), default: target.replace(/\.ts$/, '.js') };
}

function writeManifest(): void {
  const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { scripts: _, devDependencies: __, workspaces: ___, allowScripts: ____, private: _____, ...kept } = manifest;
  const exports = Object.entries(manifest.exports).map(([name, target]) => [name, builtExport(target)]);
  const built = { ...kept, exports: Object.fromEntries(exports), files: PUBLISHED };
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(built, null, 2)}\n`);
}

rmSync(dist, { recursive: true, force: true });
compile();
copyScripts();
writeManifest();
for (const file of ['README.md', 'LICENSE']) cpSync(join(root, file), join(dist, file));
