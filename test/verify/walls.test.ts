import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';

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
  .map((name) => `verify/${name}`);

it('the verification module reaches nothing of the server and nothing of Node', () => {
  const found = new Set(files.flatMap((file) => [...reached(file)]));
  assert.deepEqual([...found].sort(), [
    '@noble/curves/secp256k1',
    '@noble/hashes/sha3',
    '@noble/hashes/utils',
    'plugins-sdk/lib/json/canonical-json.ts',
    'verify/answer.ts',
    'verify/ethereum.ts',
    'verify/index.ts',
    'verify/options.ts',
    'verify/receipt.ts',
    'verify/refusal.ts',
  ]);
});

it('and names no global that browsers lack', () => {
  for (const file of files)
    assert.doesNotMatch(readFileSync(join(root, file), 'utf8'), /\b(?:Buffer|process|require|setImmediate)\b/);
});
