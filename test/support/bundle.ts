import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const CACHE = fileURLToPath(new URL('../../.cache/', import.meta.url));

/**
 * A program in one file, for tests that start it many times: from source each start takes a second of work to load its
 * modules and libraries.
 *
 * @returns the file, which is removed when this process ends.
 */
export async function bundle(program: string): Promise<string> {
  mkdirSync(CACHE, { recursive: true });
  // Below the project, where libraries find their native parts.
  const folder = mkdtempSync(join(CACHE, 'bundle-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, 'program.mjs');
  await build({
    entryPoints: [program],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Libraries in CommonJS require what node has.
    banner: {
      js: `import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);`,
    },
    external: ['lmdb'],
    logLevel: 'error',
  });
  return outfile;
}
