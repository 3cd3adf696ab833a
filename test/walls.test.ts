/** Imports lead from folder to folder as ARCHITECTURE.md says, and nowhere else. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { builtins } from '../builtins/index.ts';
import { importsOf, sources, tracked } from './support/imports.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The unit that a built-in is: its file, or its folder. */
function unitOf(file: string): string {
  return file.split('/').slice(0, 2).join('/').replace(/\.ts$/, '');
}

/** The lines of a folder's files that match, each with its place. */
function linesWith(pattern: RegExp, folder: string): string[] {
  // OpenAPI documents have such words of their own.
  const read = sources(folder).filter((file) => !file.startsWith('cli/import/'));
  return read.flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );
}

/** What package.json exports for authors of plugins. */
const ENTRY = /^plugins-sdk\/(?:index|config|openapi|state|signing|observe)\.ts$/;
const SHARED = /^(?:builtins\/shared|lib)\//;
const either = (...ways: readonly RegExp[]) => new RegExp(ways.map(({ source }) => source).join('|'));

/** Who may import whom, by the folder that holds the file, the innermost first; `packages` are all but what is ours. */
const ROOMS: readonly (readonly [room: string, allowed: RegExp, packages: RegExp])[] = [
  ['kernel/', /^kernel\//, /^(?:node:.+|tapable)$/],
  ['http/', /^(?:kernel|http|lib)\//, /^(?:node:.+|koa|koa-body|@koa\/router)$/],
  ['lib/', /^lib\//, /./],
  ['plugins-sdk/testing/', /^(?:kernel|lib|plugins-sdk)\//, /./],
  ['plugins-sdk/', /^(?:kernel\/|lib\/|plugins-sdk\/(?!testing\/))/, /./],
  ['builtins/explorer/client/', /^(?:builtins\/explorer|verify|lib)\//, /./],
  ['builtins/mcp/', either(SHARED, ENTRY, /^verify\/response\.ts$/), /./],
  ['builtins/index.ts', either(/^builtins\//, ENTRY), /./],
  ['builtins/', either(SHARED, ENTRY), /./],
  ['config/', /^(?:kernel\/|config\/|lib\/|plugins-sdk\/(?!testing\/))/, /./],
  ['service/index.ts', /^(?:kernel|http|lib|plugins-sdk|config|service)\/|^builtins\/index\.ts$/, /./],
  ['service/description.ts', /^builtins\/openapi\/document\.ts$/, /^$/],
  ['service/', /^(?:kernel|http|lib|plugins-sdk|config|service)\//, /./],
  ['cli/', /^(?:kernel|lib|plugins-sdk|config|service|verify|cli)\//, /./],
  ['verify/', /^(?:verify|lib)\//, /./],
  ['examples/plugins/', /^examples\/plugins\//, /^(?:node:.+|signed-data-proxy\/plugins-sdk(?:\/\w+)?)$/],
  ['examples/', /^examples\//, /./],
  ['tools/', /./, /./],
  ['test/', /./, /./],
];

/** Packages that example plugins are about. */
const ABOUT: Readonly<Record<string, string>> = { pg: '/state-postgres.ts', jose: '/jwt-auth.ts' };

const files = tracked.filter((file) => file.includes('/') && !/^test\/(?:package|support\/anvil)\//.test(file));
const folders = [...new Set(files.map((file) => file.split('/')[0] ?? ''))];
const isOurs = (target: string) => folders.includes(target.split('/')[0] ?? '') && target.includes('/');

function isAllowed(file: string, target: string): boolean {
  const [, allowed, packages] = ROOMS.find(([room]) => file.startsWith(room)) ?? ['', /^$/, /^$/];
  if (!isOurs(target)) return packages.test(target) || file.endsWith(ABOUT[target] ?? '/');
  // A built-in is its file, or its folder.
  return allowed.test(target) || (file.startsWith('builtins/') && unitOf(target) === unitOf(file));
}

/** What a file imports, types included, of the files that there are. */
const imports = new Map(files.map((file) => [file, importsOf(file).filter((target) => files.includes(target))]));

/** A way from a file back to itself. */
function circleFrom(start: string): string[] | undefined {
  const seen = new Set<string>();
  const visit = (file: string, way: string[]): string[] | undefined => {
    for (const next of imports.get(file) ?? []) {
      if (next === start) return way;
      if (seen.has(next)) continue;
      seen.add(next);
      const found = visit(next, [...way, next]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return visit(start, [start]);
}

describe('the walls between the folders', () => {
  it('every file stands in a room', () => {
    assert.ok(files.length > 500);
    assert.deepEqual(
      files.filter((file) => !ROOMS.some(([room]) => file.startsWith(room))),
      [],
    );
  });

  it('a file imports what its room may, downwards only', () => {
    const found = files.flatMap((file) =>
      importsOf(file).flatMap((target) => (isAllowed(file, target) ? [] : [`${file} imports ${target}`])),
    );
    assert.deepEqual(found, []);
  });

  it('no circle leads from a file to itself', () => {
    const product = files.filter((file) => !/^(?:test|tools)\//.test(file));
    assert.deepEqual(
      product.flatMap((file) => circleFrom(file)?.join(' → ') ?? []),
      [],
    );
  });

  it('a built-in describes itself in a file beside its behaviour', () => {
    const words = /\b(?:objectSchema|refTo|textSchema|withMembers|internalError|operationId: )\b/;
    const beside = /^builtins\/(?:openapi\/|[\w/-]*openapi\.ts:)/;
    assert.deepEqual(
      linesWith(words, 'builtins').filter((line) => !beside.test(line)),
      [],
    );
  });

  /** In any spelling. The name of a header (Cache-Control), a folder (/.cache) and a library (lru-cache) is no feature of ours. */
  const features = /(?<!\/\.|lru-)\b(?:api-?keys?|x402|cach\w*\b(?!-)|fhe|reclaim|json-?path|cors|rate-?limit\w*)\b/i;
  /** The SDK and the `verify` command read and write these, whoever uses them. */
  const formats = /\b(?:sse|eip-?191|abi)\b/i;

  it('the kernel contains no feature word', () => {
    assert.deepEqual([...linesWith(features, 'kernel'), ...linesWith(formats, 'kernel')], []);
  });

  for (const folder of ['lib', 'plugins-sdk', 'service', 'cli']) {
    it(`${folder} contains no feature word`, () => {
      assert.deepEqual(linesWith(features, folder), []);
    });

    it(`${folder} names no built-in that could not be an ordinary word`, () => {
      const names = builtins().flatMap(({ name }) => (name.includes('-') ? [name] : []));
      assert.ok(names.includes('encode-abi'));
      assert.deepEqual(linesWith(new RegExp(`\\b(?:${names.join('|')})\\b(?!\\.ts)`), folder), []);
    });
  }

  for (const folder of ['kernel', 'lib', 'plugins-sdk', 'service', 'cli']) {
    it(`${folder} branches on no mode and no auth type`, () => {
      const branch = /(mode|type)\s*[!=]==\s*['"`]|switch\s*\([^)]*\b(mode|type)\b/;
      assert.deepEqual(linesWith(branch, folder), []);
    });
  }
});

/** Lines of code that a room may have, and files where that is bounded, too; the numbers may only shrink. */
const SIZES: Readonly<Record<string, { readonly lines: number; readonly files?: number }>> = {
  kernel: { lines: 1242, files: 9 },
  http: { lines: 494, files: 6 },
  lib: { lines: 1837 },
  'plugins-sdk': { lines: 3104 },
  config: { lines: 2368 },
  service: { lines: 2792 },
  builtins: { lines: 13645 },
  cli: { lines: 2743 },
  verify: { lines: 1400 },
  tools: { lines: 1095 },
  test: { lines: 60_638 },
};

/** Without blank lines, block comments, and lines that begin with `//`. */
function codeLines(file: string): number {
  const text = readFileSync(join(root, file), 'utf8').replace(/\/\*.*?\*\//gs, '');
  return text.split('\n').filter((line) => line.trim() !== '' && !line.trimStart().startsWith('//')).length;
}

const code = /\.(?:[cm]?[jt]s|tsx|sol)$/;

/** Files of code in a room. */
function codeIn(room: string): string[] {
  return tracked.filter((file) => file.startsWith(`${room}/`) && code.test(file) && !/\.d\.m?ts$/.test(file));
}

/** An hour of an auditor. */
const BUILTIN_LINES = 1300;

it(`no built-in has more than ${BUILTIN_LINES} lines of code`, () => {
  const lines = new Map<string, number>();
  const own = codeIn('builtins').filter((file) => !file.startsWith('builtins/shared/'));
  for (const file of own) lines.set(unitOf(file), (lines.get(unitOf(file)) ?? 0) + codeLines(file));
  assert.deepEqual(
    [...lines].filter(([, count]) => count > BUILTIN_LINES),
    [],
  );
});

for (const [room, { lines: most, files: mostFiles = Number.POSITIVE_INFINITY }] of Object.entries(SIZES)) {
  it(`${room} has at most ${most} lines of code`, () => {
    const held = codeIn(room);
    const lines = held.reduce((sum, file) => sum + codeLines(file), 0);
    assert.ok(lines <= most && held.length <= mostFiles, `${lines} lines in ${held.length} files`);
  });
}

it('no function of a test is longer than lint allows, unless it is the body of a suite', () => {
  const rule = '--only=complexity/noExcessiveLinesPerFunction';
  const biome = join(root, 'node_modules/.bin/biome');
  const words = ['lint', rule, '--reporter=json', '--max-diagnostics=none', 'test'];
  const { stdout } = spawnSync(biome, words, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const found: readonly { readonly location: { readonly path: string; readonly start: { readonly line: number } } }[] =
    JSON.parse(stdout).diagnostics;
  assert.ok(found.length > 300, 'suites are found, too');
  const long = found.flatMap(({ location: { path, start } }) => {
    const before = readFileSync(join(root, path), 'utf8').split('\n').slice(0, start.line);
    const call = before.findLast((line) => /^ *(?:describe\w*|it|test|(?:export )?(?:async )?function)\(?/.test(line));
    return call?.trimStart().startsWith('describe') ? [] : [`${path}:${start.line}`];
  });
  assert.deepEqual(long, []);
});
