import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build } from 'esbuild';

/** The parts of typebox that the service imports: some 700 files, which take node a third of the start to open. */
const PARTS = ['typebox', 'typebox/value', 'typebox/compile'];

/** Folders of code that are published. */
export const PUBLISHED = ['kernel', 'http', 'builtins', 'plugins-sdk', 'config', 'cli', 'verify'];

const FOLDER = 'vendor';

function fileOf(part: string): string {
  return `${part.replaceAll('/', '-')}.js`;
}

/** Puts typebox into a few files of a folder. */
async function bundleTypebox(outdir: string): Promise<void> {
  await build({
    entryPoints: PARTS.map((part) => ({ in: part, out: fileOf(part).replace(/\.js$/, '') })),
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
  });
}

/**
 * Puts typebox into a few files of the package, and has the package's own modules import those. Its declarations go on
 * naming typebox, which stays a dependency.
 */
export async function vendorTypebox(dist: string): Promise<void> {
  await bundleTypebox(join(dist, FOLDER));
  for (const folder of PUBLISHED) {
    for (const name of readdirSync(join(dist, folder), { recursive: true, encoding: 'utf8' })) {
      if (name.endsWith('.js')) redirect(join(dist, folder, name), dist);
    }
  }
}

function redirect(file: string, dist: string): void {
  const text = readFileSync(file, 'utf8');
  const redirected = text.replace(/(\bfrom )'(typebox(?:\/\w+)?)'/g, (statement, keyword: string, part: string) => {
    if (!PARTS.includes(part)) return statement;
    return `${keyword}'${relative(dirname(file), join(dist, FOLDER, fileOf(part)))}'`;
  });
  if (redirected !== text) writeFileSync(file, redirected);
}
