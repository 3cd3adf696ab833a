import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { builtins } from '../builtins/index.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') || name.endsWith('.js'))
    .map((name) => join(folder, name));
}

/** What a file imports: paths from the project's root for its own files, names for packages. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const statements = text.matchAll(/\b(?:from|import|require)\b\s*(?:['"]|\(\s*['"`])([^'"`]+)['"`]/g);
  return [...statements].map(([, target = '']) =>
    target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : target,
  );
}

/** The unit that a built-in is: its file, or its folder. */
function unitOf(file: string): string {
  return file.split('/').slice(0, 2).join('/').replace(/\.ts$/, '');
}

function violations(folder: string, allowed: (target: string, file: string) => boolean): string[] {
  return sources(folder).flatMap((file) =>
    importsOf(file)
      .filter((target) => !allowed(target, file))
      .map((target) => `${file} imports ${target}`),
  );
}

/** The lines of a folder's files that match, each with its place. */
function linesWith(pattern: RegExp, folder: string): string[] {
  return sources(folder).flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );
}

const isPackage = (target: string) =>
  !/^(kernel|http|builtins|plugins-sdk|config|cli|examples|test|bench)\//.test(target);

describe('the walls between the folders', () => {
  it('the kernel imports itself, tapable and node', () => {
    const known = /^(node:.+|tapable|kernel\/.+)$/;
    assert.deepEqual(
      violations('kernel', (target) => known.test(target)),
      [],
    );
  });

  it('HTTP imports the kernel, koa and its router, and node', () => {
    const known = /^(node:.+|koa|@koa\/router|(?:kernel|http)\/.+)$/;
    assert.deepEqual(
      violations('http', (target) => known.test(target)),
      [],
    );
  });

  it('a built-in imports the SDK and libraries, never the kernel and never another built-in', () => {
    const allowed = (target: string, file: string) => {
      if (file === 'builtins/index.ts') return target.startsWith('builtins/') || target.startsWith('plugins-sdk/');
      return (
        isPackage(target) ||
        target.startsWith('plugins-sdk/') ||
        target === `${unitOf(file)}.ts` ||
        target.startsWith(`${unitOf(file)}/`)
      );
    };
    assert.deepEqual(violations('builtins', allowed), []);
  });

  it('the SDK imports the kernel and libraries', () => {
    const allowed = (target: string) => isPackage(target) || /^(kernel|plugins-sdk)\//.test(target);
    assert.deepEqual(violations('plugins-sdk', allowed), []);
  });

  it('the config knows the SDK, and no built-in', () => {
    const allowed = (target: string) => isPackage(target) || /^(config|plugins-sdk)\//.test(target);
    assert.deepEqual(violations('config', allowed), []);
  });

  it('nothing but the composition root imports the built-ins', () => {
    const elsewhere = ['kernel', 'http', 'plugins-sdk', 'config', 'examples', 'cli'].flatMap((folder) =>
      violations(folder, (target, file) => !target.startsWith('builtins/') || file === 'cli/service/index.ts'),
    );
    assert.deepEqual(elsewhere, []);
  });

  it('an example plugin imports the SDK, what of node it needs, and the package that it is about', () => {
    const about: Readonly<Record<string, string>> = { pg: '/state-postgres.ts', jose: '/jwt-auth.ts' };
    const allowed = (target: string, file: string) =>
      target === 'signed-data-proxy/plugins-sdk' || target.startsWith('node:') || file.endsWith(about[target] ?? '/');
    assert.deepEqual(violations('examples/plugins', allowed), []);
  });

  /** In any spelling. The name of a header (Cache-Control) and of a folder (/.cache) is no feature of ours. */
  const features = /(?<!\/\.)\b(?:api-?keys?|x402|cach\w*\b(?!-)|fhe|reclaim|json-?path|cors|rate-?limit\w*)\b/i;
  /** The SDK and the `verify` command read and write these, whoever uses them. */
  const formats = /\b(?:sse|eip-?191|abi)\b/i;

  it('the kernel contains no feature word', () => {
    assert.deepEqual([...linesWith(features, 'kernel'), ...linesWith(formats, 'kernel')], []);
  });

  for (const folder of ['plugins-sdk', 'cli']) {
    it(`${folder} contains no feature word`, () => {
      assert.deepEqual(linesWith(features, folder), []);
    });

    it(`${folder} names no built-in that could not be an ordinary word`, () => {
      const names = builtins().flatMap(({ name }) => (name.includes('-') ? [name] : []));
      assert.ok(names.includes('encode-abi'));
      assert.deepEqual(linesWith(new RegExp(`\\b(?:${names.join('|')})\\b(?!\\.ts)`), folder), []);
    });
  }

  for (const folder of ['kernel', 'plugins-sdk', 'cli']) {
    it(`${folder} branches on no mode and no auth type`, () => {
      const branch = /(mode|type)\s*[!=]==\s*['"`]|switch\s*\([^)]*\b(mode|type)\b/;
      assert.deepEqual(linesWith(branch, folder), []);
    });
  }
});
