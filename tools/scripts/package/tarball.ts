import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { anchorsOf, linksOf } from '../../../test/support/docs.ts';
import { fail, root, run } from './run.ts';

export interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

/** Packs a built package into another folder. */
export function pack(built: string, into: string): Packed {
  const printed: unknown = JSON.parse(run(built, 'npm', 'pack', '--json', '--pack-destination', into));
  // npm prints a list, or an object by package name.
  const [packed] = Object.values(Object(printed)) as Packed[];
  return packed ?? fail('npm packed nothing');
}

const RAW = /^(?:examples|cli\/plugin\/template)\//;
const isOdd = (name: string) =>
  /\.map$|\.test\.|^bench\/|^scripts\/|^packages\//.test(name) ||
  (/(?:^|\/)test\//.test(name) && !/^test\/vectors\/[\w-]+\.json$/.test(name)) ||
  (/\.ts$/.test(name) && !/\.d\.ts$/.test(name));

/** Nothing that only the source tree needs, and nothing that leads nowhere. */
export function checkFiles(built: string, { files }: Packed, expected: readonly string[]): void {
  const names = files.map(({ path }) => path);
  const text = (name: string) => readFileSync(join(built, name), 'utf8');
  const none = (what: string, found: readonly string[]) => found.length === 0 || fail(`${what}: ${found.join(', ')}`);
  none(
    'does not belong into the package',
    names.filter((name) => !RAW.test(name) && isOdd(name)),
  );
  const wanted = ['README.md', 'LICENSE', 'package.json', ...expected];
  none(
    'missing in the package',
    wanted.filter((name) => !names.includes(name)),
  );
  none(
    'cannot be executed',
    files.flatMap(({ path, mode }) => (path === 'cli/bin.js' && mode !== 0o755 ? [path] : [])),
  );
  const code = names.filter((name) => /\.(?:m?js|d\.ts)$/.test(name) && !RAW.test(name));
  none(
    'refers to sources that are not there',
    code.filter((name) => /\/\/# sourceMappingURL=|(?:from |import\()['"]\.[^'"]*\.ts['"]/.test(text(name))),
  );
  const pages = names.filter((name) => name.endsWith('.md'));
  none(
    'links lead out of the package or nowhere',
    pages.flatMap((name) => brokenLinks(name, text(name), names, text)),
  );
}

/** Links of a page to what was not packed, or to headings that there are not. */
function brokenLinks(page: string, text: string, names: readonly string[], read: (name: string) => string): string[] {
  const isPacked = (target: string) => names.some((name) => name === target || name.startsWith(`${target}/`));
  return linksOf(text).flatMap((link) => {
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page : join(dirname(page), file).replace(/\/$/, '');
    const leads = isPacked(target) && (anchor === undefined || anchorsOf(read(target)).has(anchor));
    return leads ? [] : [`${page} → ${link}`];
  });
}

/** What the linters of packages have to say, warnings included. */
export async function lint(tarball: string): Promise<void> {
  const bytes = readFileSync(tarball);
  const data = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball: data as ArrayBuffer }, strict: true });
  // Of the program's own folder: node does look there when a module of it names the package.
  const wrong = messages.filter(({ code }) => code !== 'NESTED_PACKAGE_JSON_FIELD_IGNORED');
  if (wrong.length > 0) fail(`publint:\n${wrong.map((message) => formatMessage(message, pkg)).join('\n')}`);
  run(root, join(root, 'node_modules', '.bin', 'attw'), tarball, '--profile', 'esm-only');
}

/** The packages that a project has, those of a scope counted one by one. */
export function installedIn(project: string): string[] {
  const modules = join(project, 'node_modules');
  return readdirSync(modules).flatMap((name) => {
    if (name.startsWith('@')) return readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`);
    return existsSync(join(modules, name, 'package.json')) ? [name] : [];
  });
}
