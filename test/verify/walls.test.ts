/** The verification module needs no server and no Node.js, and is small. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What a file and all that it imports take from elsewhere: packages, and files by their path from the root. */
function reached(file: string, seen = new Set<string>()): Set<string> {
  seen.add(file);
  const text = readFileSync(join(root, file), 'utf8');
  for (const [, target = ''] of text.matchAll(/\b(?:from|import|require)\b\s*(?:['"]|\(\s*['"`])([^'"`]+)['"`]/g)) {
    const path = target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : undefined;
    if (path === undefined) seen.add(target);
    else if (!seen.has(path)) reached(path, seen);
  }
  return seen;
}

const files = readdirSync(join(root, 'verify'))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => `verify/${name}`)
  .sort();

it('the verification module reaches nothing of the server and nothing of Node', () => {
  const found = new Set(files.flatMap((file) => [...reached(file)]));
  assert.deepEqual([...found].sort(), [
    '@noble/curves/abstract/modular',
    '@noble/curves/abstract/weierstrass',
    '@noble/hashes/sha3',
    '@noble/hashes/utils',
    'lib/eth/decode-abi.ts',
    'lib/json/canonical-json.ts',
    'lib/json/value.ts',
    ...files,
  ]);
});

it('and names no global that browsers lack', () => {
  for (const file of files)
    assert.doesNotMatch(readFileSync(join(root, file), 'utf8'), /\b(?:Buffer|process|require|setImmediate)\b/);
});

it('and takes at most 48 kB of a page, minified, with all that it needs', async () => {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'verify/index.ts')],
    ...{ bundle: true, minify: true, write: false, platform: 'browser', format: 'esm', target: 'es2022' },
  });
  const size = outputFiles[0]?.contents.length ?? 0;
  assert.ok(size > 30_000 && size <= 48_000, `${size} bytes`);
});
