import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, stop } from 'esbuild';

/** The oldest browsers that the page supports, and the language version that they share. */
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
    // As in a built package, a tsconfig.json of a parent folder must have no effect.
    tsconfigRaw: {},
  });
  const text = outputFiles[0]?.text.trim();
  if (text === undefined) throw new Error(`nothing was made of ${file}`);
  return text;
}

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
