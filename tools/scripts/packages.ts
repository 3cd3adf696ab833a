import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Folders of code that are published. */
export const PUBLISHED = ['kernel', 'http', 'builtins', 'lib', 'plugins-sdk', 'config', 'service', 'cli', 'verify'];

/** Parts of the built package as packages of their own, in its folder `packages/`: what checks answers, and what plugins are written with. */

type Conditions = Readonly<Record<string, string>>;

export interface Manifest {
  readonly exports: Readonly<Record<string, string | Conditions>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

const RELATIVE = /(?:\bfrom |\bimport |\bimport\()\s*['"](\.[^'"]+)['"]/g;
const PACKAGE = /(?:\bfrom|\bimport|\brequire|\blazy)\s*\(?\s*['"]((?:@[\w.-]+\/)?[\w-][\w.-]*)(?:\/[\w./-]*)?['"]/g;

/** What a consumer of a package sees under a name: a module and its types. */
export function typed(module: string): Conditions {
  return { types: module.replace(/\.js$/, '.d.ts'), default: module };
}

/** Files that the given ones lead to, with the declarations of modules; paths are relative to the base. */
function reached(base: string, files: readonly string[]): string[] {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file) || !existsSync(join(base, file))) return;
    seen.add(file);
    const isTypes = file.endsWith('.d.ts');
    if (!isTypes) visit(file.replace(/\.js$/, '.d.ts'));
    for (const [, target = ''] of readFileSync(join(base, file), 'utf8').matchAll(RELATIVE)) {
      visit(join(dirname(file), isTypes ? target.replace(/\.js$/, '.d.ts') : target));
    }
  };
  for (const file of files) visit(file);
  return [...seen].toSorted();
}

/** Those of the service's dependencies that modules import, or declarations refer to. */
function dependenciesOf(base: string, files: readonly string[], { dependencies }: Manifest): Record<string, string> {
  const texts = files.map((file) => readFileSync(join(base, file), 'utf8'));
  const named = new Set(texts.flatMap((text) => [...text.matchAll(PACKAGE)].map(([, name]) => name)));
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => named.has(name)));
}

/** What all of them have, and what each says of itself. */
function heading({ version, license, type, engines }: Manifest, own: Manifest): Record<string, unknown> {
  const { name, description, keywords, ...rest } = own;
  return { name, version, description, keywords, license, type, engines, ...rest };
}

/** What a package holds, and what its manifest says of that. */
interface Contents {
  /** Where each file comes from, by where it goes. */
  readonly files: ReadonlyMap<string, string>;
  readonly says: Readonly<Record<string, unknown>>;
}

/** Modules, and all that they lead to. */
function modulesOf(dist: string, own: Manifest, manifest: Manifest): Contents {
  const exports = Object.entries(own.exports).map(([path, module]): [string, string] => [path, String(module)]);
  const root = exports.find(([path]) => path === '.')?.[1];
  const files = reached(
    dist,
    exports.map(([, module]) => join('.', module)),
  );
  return {
    files: new Map(files.map((file) => [file, file])),
    says: {
      // For bundlers and type checkers that do not read `exports`.
      ...(root && { main: root, types: typed(root).types }),
      exports: Object.fromEntries(exports.map(([path, module]) => [path, typed(module)])),
      files: [...new Set(files.map((file) => file.split('/')[0]))],
      dependencies: dependenciesOf(dist, files, manifest),
    },
  };
}

/** A folder of Solidity, whose files stand at the top: `import "name/File.sol"`. Without `exports`, tools of that language find them. */
function contractsOf(dist: string, folder: string): Contents {
  const names = readdirSync(join(dist, folder)).filter((name) => name.endsWith('.sol'));
  return {
    files: new Map(names.map((name) => [name, join(folder, name)])),
    says: { type: undefined, engines: undefined, contracts: undefined, files: names },
  };
}

/** @param dist the built package. @param sources has a folder for each package: its README and what is its own in its manifest. */
export function writePackages(dist: string, sources: string, manifest: Manifest): void {
  for (const name of readdirSync(sources)) {
    const own: Manifest = JSON.parse(readFileSync(join(sources, name, 'package.json'), 'utf8'));
    const { files, says } =
      typeof own.contracts === 'string' ? contractsOf(dist, own.contracts) : modulesOf(dist, own, manifest);
    const target = join(dist, 'packages', name);
    for (const [to, from] of files) {
      mkdirSync(dirname(join(target, to)), { recursive: true });
      cpSync(join(dist, from), join(target, to));
    }
    cpSync(join(sources, name, 'README.md'), join(target, 'README.md'));
    cpSync(join(dist, 'LICENSE'), join(target, 'LICENSE'));
    const built = { ...heading(manifest, own), ...says };
    writeFileSync(join(target, 'package.json'), `${JSON.stringify(built, null, 2)}\n`);
  }
}
