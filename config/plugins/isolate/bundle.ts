import { dirname, extname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BuildFailure, Plugin } from 'esbuild';
import { PluginProblem } from '../plugin-problem.ts';

const own = fileURLToPath(import.meta.url);
const root = fileURLToPath(new URL('../../../', import.meta.url));
const main = fileURLToPath(new URL(`./child${extname(own)}`, import.meta.url));

/** As where plugins are loaded into the service, the SDK is always that of the service that runs. */
const ownSdk: Plugin = {
  name: 'own-sdk',
  setup(build) {
    build.onResolve({ filter: /^signed-data-proxy(?:-plugins-sdk)?(?:\/|$)/ }, async ({ path, kind, pluginData }) => {
      if (pluginData === ownSdk) return undefined;
      const name = path.replace(/^(signed-data-proxy)-(plugins-sdk)/, '$1/$2');
      const found = await build.resolve(name, { kind, resolveDir: dirname(own), pluginData: ownSdk });
      return { ...found, pluginData: undefined, sideEffects: false };
    });
    // What a plugin does not use of the SDK need not be loaded.
    build.onResolve({ filter: /^\.\.?\// }, ({ path, importer }) =>
      isOfSdk(importer) ? { path: resolve(dirname(importer), path), sideEffects: false } : undefined,
    );
    build.onLoad({ filter: /\.node$/ }, ({ path }) => ({ errors: [{ text: `${ADDON}${path}` }] }));
  },
};

/** Whether a file is of the SDK, or of the kernel, which it shares with the service. */
function isOfSdk(file: string): boolean {
  return ['plugins-sdk/', 'lib/', 'kernel/'].some((folder) => file.startsWith(root + folder));
}

const ADDON = 'native addon ';

/** One at a time: the bundler's own process ends with the last of them. */
let last: Promise<unknown> = Promise.resolve();

/** What the process of an isolated plugin runs: the plugin, what it imports, and what talks to the service, as one module. */
/** @throws PluginProblem */
export function bundlePlugin(url: string): Promise<string> {
  return inTurn(() => bundle(fileURLToPath(url)));
}

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const done = last.then(work);
  last = done.catch(() => undefined);
  return done;
}

/**
 * Finds what is no JavaScript in a file, and in what it imports by a path. Node names neither file nor line of that.
 * @returns nothing where there is no such fault, or no bundler.
 */
export function syntaxFault(url: string): Promise<string | undefined> {
  return inTurn(async () => {
    const { build, stop } = await bundler();
    const absWorkingDir = dirname(fileURLToPath(url));
    const options = { absWorkingDir, bundle: true, packages: 'external', write: false, logLevel: 'silent' } as const;
    return build({ ...options, entryPoints: [fileURLToPath(url)], format: 'esm', platform: 'node', tsconfigRaw: {} })
      .then(() => undefined, faultOf)
      .finally(stop);
  }).catch(() => undefined);
}

async function bundle(file: string): Promise<string> {
  const { build, stop } = await bundler();
  try {
    const { outputFiles } = await build({
      stdin: { contents: entry(file), resolveDir: dirname(file), sourcefile: 'isolated-plugin.js' },
      // Files are named from there in what it says.
      absWorkingDir: dirname(file),
      bundle: true,
      write: false,
      sourcemap: 'inline',
      // What it throws names its files.
      sourceRoot: `${pathToFileURL(dirname(file)).href}/`,
      sourcesContent: false,
      outfile: join(dirname(file), 'isolated-plugin.js'),
      format: 'esm',
      platform: 'node',
      target: 'node20',
      // As without a bundler: a tsconfig.json in a folder above must not matter.
      tsconfigRaw: {},
      // Packages in CommonJS require what node has.
      banner: { js: `import { createRequire as from } from 'node:module'; const require = from('file:///plugin.js');` },
      plugins: [ownSdk],
      logLevel: 'silent',
    });
    return outputFiles[0]?.text ?? '';
  } catch (error) {
    throw new PluginProblem(problemOf(error));
  } finally {
    await stop();
  }
}

function entry(file: string): string {
  return `import { run } from ${JSON.stringify(main)};\nrun(() => import(${JSON.stringify(file)}));\n`;
}

async function bundler(): Promise<typeof import('esbuild')> {
  try {
    return await import('esbuild');
  } catch {
    throw new PluginProblem('cannot be isolated: the package "esbuild", which bundles it, is not installed');
  }
}

function problemOf(error: unknown): string {
  const fault = faultOf(error);
  if (fault === undefined) return `cannot be bundled: ${error instanceof Error ? error.message : String(error)}`;
  return fault.startsWith(ADDON)
    ? `uses the ${fault} and cannot be isolated: the process of an isolated plugin may load none`
    : `cannot be bundled: ${fault}`;
}

/** The first error of the bundler, with its file and line unless it names a file itself. */
function faultOf(error: unknown): string | undefined {
  const { errors: [first] = [] } = error as Partial<BuildFailure>;
  const { file, line } = first?.location ?? {};
  return file === undefined || first?.text.startsWith(ADDON) ? first?.text : `${first?.text} (${file}:${line})`;
}
