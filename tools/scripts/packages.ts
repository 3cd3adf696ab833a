import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Writes parts of the built package as packages into `packages/`: verification, contracts, and the SDK of plugins. */

/** Folders of code that are published. */
export const PUBLISHED = ['kernel', 'http', 'builtins', 'lib', 'plugins-sdk', 'config', 'service', 'cli', 'verify'];

type Conditions = Readonly<Record<string, string>>;

export interface Manifest {
  readonly exports: Readonly<Record<string, string | Conditions>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

/** A package's own part of its manifest. Without `exports` it has only Solidity files, at the top: `import "name/File.sol"`. */
interface Own {
  readonly exports?: Readonly<Record<string, { readonly default: string }>>;
  readonly contracts?: string;
}

const RELATIVE = /(?:\bfrom |\bimport |\bimport\()\s*['"](\.[^'"]+)['"]/g;
const PACKAGE = /(?:\bfrom|\bimport|\brequire|\blazy)\s*\(?\s*['"]((?:@[\w.-]+\/)?[\w-][\w.-]*)(?:\/[\w./-]*)?['"]/g;

/** Returns the given files and all that they import, with the declarations of modules. Paths are relative to the base. */
function reached(base: string, files: readonly string[]): string[] {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file) || !existsSync(join(base, file))) return;
    seen.add(file);
    const isTypes = file.endsWith('.d.ts');
    if (!isTypes) visit(file.replace(/\.js$/, '.d.ts'));
    for (const [, target = ''] of readFileSync(join(base, file), 'utf8').matchAll(RELATIVE)) {
      visit(join(dirname(file), isTypes ? target.replace(/(?<!\.d)\.ts$/, '.d.ts') : target));
    }
  };
  for (const file of files) visit(file);
  return [...seen].toSorted();
}

/** Returns those of the service's dependencies that the modules import, or to which the declarations refer. */
function dependenciesOf(base: string, files: readonly string[], { dependencies }: Manifest): Record<string, string> {
  const texts = files.map((file) => readFileSync(join(base, file), 'utf8'));
  const named = new Set(texts.flatMap((text) => [...text.matchAll(PACKAGE)].map(([, name]) => name)));
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => named.has(name)));
}

/** Writes the packages. @param dist the built package. @param sources has a folder for each: its README and its own manifest. */
export function writePackages(dist: string, sources: string, manifest: Manifest): void {
  const { version, license, engines } = manifest;
  for (const name of readdirSync(sources)) {
    const { contracts, ...own }: Own = JSON.parse(readFileSync(join(sources, name, 'package.json'), 'utf8'));
    const base = join(dist, contracts ?? '');
    const modules = Object.values(own.exports ?? {}).map((target) => join(target.default));
    const files = own.exports ? reached(base, modules) : readdirSync(base).filter((file) => file.endsWith('.sol'));
    const target = join(dist, 'packages', name);
    for (const file of files) cpSync(join(base, file), join(target, file));
    cpSync(join(sources, name, 'README.md'), join(target, 'README.md'));
    cpSync(join(dist, 'LICENSE'), join(target, 'LICENSE'));
    const needs = own.exports && { engines, dependencies: dependenciesOf(base, files, manifest) };
    const held = [...new Set(files.map((file) => file.split('/')[0]))];
    const built = { ...own, version, license, files: held, ...needs };
    writeFileSync(join(target, 'package.json'), `${JSON.stringify(built, null, 2)}\n`);
  }
}
