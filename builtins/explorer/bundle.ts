import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, stop } from 'esbuild';

/** The oldest browsers that the page supports, and the version of the language that they share. */
const TARGET = ['es2022', 'chrome111', 'firefox119', 'safari16.4'];

function fileOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

async function bundled(file: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileOf(file)],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: TARGET,
    // As in a built package: a tsconfig.json in a folder above must not matter.
    tsconfigRaw: {},
  });
  const text = outputFiles[0]?.text.trim();
  if (text === undefined) throw new Error(`nothing was made of ${file}`);
  return text;
}

/** @param text must not be able to end its element, nor begin a comment in it. */
function inline(page: string, tag: 'script' | 'style', text: string): string {
  if (/<!--|<\/?(?:script|style)/i.test(text)) throw new Error(`the text of <${tag}> would not stay in it`);
  return page.replace(`<${tag}></${tag}>`, () => `<${tag}>${text}</${tag}>`);
}

/**
 * Makes the page of the explorer, with all that it needs in one text. Only the data is left out, which the service
 * fills in. Needs the sources of the page beside this file, and esbuild.
 */
export async function bundleExplorer(): Promise<string> {
  try {
    const [page, style, script] = await Promise.all([
      readFile(fileOf('page.html'), 'utf8'),
      bundled('page.css'),
      bundled('client/main.ts'),
    ]);
    return inline(inline(page, 'style', style), 'script', script);
  } finally {
    // Otherwise esbuild's process would live as long as the service.
    await stop();
  }
}
