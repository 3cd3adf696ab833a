import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, stop } from 'esbuild';

/** The oldest browsers that the page supports, and the language version that they share. */
const TARGET = ['es2022', 'chrome111', 'firefox119', 'safari16.4'];

/** Puts a text into the page's element. @param text must not contain a tag that ends it, or a comment's begin. */
function inline(page: string, tag: 'script' | 'style', text: string): string {
  if (/<!--|<\/?(?:script|style)/i.test(text)) throw new Error(`the text of <${tag}> would not stay in it`);
  return page.replace(`<${tag}></${tag}>`, () => `<${tag}>${text}</${tag}>`);
}

/**
 * Bundles the explorer's page with its style and script into one text. Only the data is left out; the service fills it in.
 * Needs the page's sources beside this file, and esbuild.
 */
export async function bundleExplorer(): Promise<string> {
  // A bundled program knows this file's place only by its URL.
  const folder = fileURLToPath(new URL('.', import.meta.url));
  try {
    const page = await readFile(join(folder, 'page.html'), 'utf8');
    const { outputFiles } = await build({
      absWorkingDir: folder,
      entryPoints: ['page.css', 'client/main.ts'],
      outdir: folder,
      bundle: true,
      minify: true,
      write: false,
      format: 'iife',
      platform: 'browser',
      target: TARGET,
      // As in a built package, a tsconfig.json of a parent folder must have no effect.
      tsconfigRaw: {},
    });
    const made = (ending: string) => outputFiles.find(({ path }) => path.endsWith(ending))?.text.trim() ?? '';
    return inline(inline(page, 'style', made('.css')), 'script', made('.js'));
  } finally {
    // Otherwise esbuild's process would live as long as the service.
    await stop();
  }
}
