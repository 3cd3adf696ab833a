import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { anchorsOf, linksOf } from '../../../test/support/docs.ts';
import { fail, root, run } from './run.ts';

/** Matches files that are published as they are in the source tree. */
const RAW = /^(?:examples|cli\/plugin\/template)\//;
const ODD = /\.map$|\.test\.|^(?:bench|scripts|packages|tools)\/|^test\/(?!vectors\/[\w-]+\.json$)|(?<!\.d)\.ts$/;
const TO_SOURCES = /\/\/# sourceMappingURL=|(?:from |import\()['"]\.[^'"]*\.ts['"]/;

/** Packs a built package into another folder, and checks the content. @returns the path of the tarball. */
export async function tarballOf(built: string, into: string): Promise<string> {
  const tarball = join(into, run(built, 'npm', 'pack', '--silent', '--pack-destination', into).trim());
  const names = run(into, 'tar', '-tzf', tarball).match(/(?<=^package\/).+$/gm) ?? [];
  const text = (name: string) => readFileSync(join(built, name), 'utf8');
  const own = names.filter((name) => !RAW.test(name));
  const odd = own.filter((name) => ODD.test(name));
  assert.deepEqual(odd, [], 'does not belong into the package');
  const broken = own.filter((name) => /\.[cm]?js$/.test(name) && TO_SOURCES.test(text(name)));
  assert.deepEqual(broken, [], 'refers to sources that are not there');
  const links = names.filter((name) => name.endsWith('.md')).flatMap((name) => brokenLinks(name, names, text));
  assert.deepEqual(links, [], 'links lead out of the package or nowhere');
  if (own.some((name) => name.endsWith('.js'))) await lint(tarball);
  return tarball;
}

/** Returns the links of a page to files that were not packed, or to headings that do not exist. */
function brokenLinks(page: string, names: readonly string[], read: (name: string) => string): string[] {
  const isPacked = (target: string) => names.some((name) => name === target || name.startsWith(`${target}/`));
  return linksOf(read(page)).flatMap((link) => {
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page : join(dirname(page), file).replace(/\/$/, '');
    const leads = isPacked(target) && (anchor === undefined || anchorsOf(read(target)).has(anchor));
    return leads ? [] : [`${page} → ${link}`];
  });
}

/** Runs the linters of packages. A warning is an error, too. */
async function lint(path: string): Promise<void> {
  const { buffer, byteOffset, byteLength } = readFileSync(path);
  const tarball = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  // The program's folder has its own manifest, which node reads when a module in it imports the package by its name.
  const wrong = messages.filter(({ code }) => code !== 'NESTED_PACKAGE_JSON_FIELD_IGNORED');
  if (wrong.length > 0) fail(`publint:\n${wrong.map((message) => formatMessage(message, pkg)).join('\n')}`);
  run(root, join(root, 'node_modules', '.bin', 'attw'), path, '--profile', 'esm-only');
}
