import { existsSync, readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { join, resolve, sep } from 'node:path';
import { isRecord } from '../path.ts';
import { PluginProblem } from './problem.ts';

const PACKAGE = /^((?:@[\w.~-]+\/)?[\w~-][\w.~-]*)(\/.+)?$/;
const CONDITIONS = new Set(['node', 'import', 'module-sync', 'default']);

/**
 * The file that `import` of a package would load in the folder of `configFile`. Node 20 resolves for another folder only as
 * `require` does, which does not see packages that export ES modules only; so `exports` is read here.
 *
 * @throws PluginProblem
 */
export function resolvePackage(name: string, configFile: string): string {
  const [, packageName, subpath = ''] = PACKAGE.exec(name) ?? [];
  if (packageName === undefined) throw new PluginProblem('is neither a path nor the name of a package');
  if (isBuiltin(name)) throw new PluginProblem('is a module of Node.js');
  const require = createRequire(configFile);
  const folders = (require.resolve.paths(name) ?? []).map((folder) => join(folder, packageName));
  const folder = folders.find((candidate) => existsSync(join(candidate, 'package.json')));
  if (folder === undefined) throw new PluginProblem('there is no such package');
  const entry = entryOf(folder, `.${subpath}`);
  if (entry !== undefined) return entry;
  try {
    return require.resolve(name);
  } catch {
    throw new PluginProblem('the package exports no such module');
  }
}

/** What the package's `exports` say about a subpath; patterns are left to `require`. */
function entryOf(folder: string, subpath: string): string | undefined {
  const manifest: unknown = readManifest(join(folder, 'package.json'));
  const exported = isRecord(manifest) ? manifest.exports : undefined;
  const bySubpath = isRecord(exported) && Object.keys(exported).some((key) => key.startsWith('.'));
  const target = pick(bySubpath ? exported[subpath] : subpath === '.' ? exported : undefined);
  if (target === undefined) return undefined;
  const file = resolve(folder, target);
  return file.startsWith(folder + sep) ? file : undefined;
}

/** @throws PluginProblem */
function readManifest(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    throw new PluginProblem('the package has no readable package.json');
  }
}

/** The first target whose conditions hold, in the order of the manifest. */
function pick(target: unknown): string | undefined {
  if (typeof target === 'string') return target.startsWith('./') ? target : undefined;
  if (Array.isArray(target)) return target.map(pick).find((found) => found !== undefined);
  if (!isRecord(target)) return undefined;
  const held = Object.entries(target).filter(([condition]) => CONDITIONS.has(condition));
  return held.map(([, inner]) => pick(inner)).find((found) => found !== undefined);
}
