import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleTypebox, PUBLISHED } from './vendor.ts';

/** Makes what a start from source reads instead of typebox's many files. npm runs it after an install. */
async function prepare(): Promise<void> {
  const folder = new URL('../node_modules/.cache/typebox/', import.meta.url);
  const installed = new URL('../node_modules/typebox/package.json', import.meta.url);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const modules = await bundleTypebox(fileURLToPath(folder));
  const { version } = JSON.parse(readFileSync(installed, 'utf8'));
  const files = readdirSync(folder);
  writeFileSync(
    new URL('modules.json', folder),
    `${JSON.stringify({ version, modules, files, importers: PUBLISHED })}\n`,
  );
}

try {
  await prepare();
} catch (error) {
  // An install without it is complete: the start only takes longer.
  console.warn('typebox was not put into few files:', error);
}
