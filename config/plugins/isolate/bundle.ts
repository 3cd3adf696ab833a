import { dirname, extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BuildFailure, BuildOptions, Plugin } from 'esbuild';
import { PluginProblem } from '../plugin-problem.ts';

const own = fileURLToPath(import.meta.url);
const main = fileURLToPath(new URL(`./child${extname(own)}`, import.meta.url));

/** As where plugins are loaded into the service, the SDK is always that of the service that runs. */
const ownSdk: Plugin = {
  name: 'own-sdk',
  setup(build) {
    build.onResolve({ filter: /^signed-data-proxy(?:-plugins-sdk)?(?:\/|$)/ }, ({ path, kind, pluginData }) => {
      if (pluginData === ownSdk) return undefined;
      const name = path.replace(/^(signed-data-proxy)-(plugins-sdk)/, '$1/$2');
      return build.resolve(name, { kind, resolveDir: dirname(own), pluginData: ownSdk });
    });
  },
};

/** One at a time: the bundler's own process ends with the last of them. */
let last: Promise<unknown> = Promise.resolve();

/** Has the bundler make one module of a file and what it imports. @throws BuildFailure */
function bundle(file: string, options: BuildOptions): Promise<string> {
  const done = last.then(async () => {
    const { build, stop } = await import('esbuild');
    const made = build({
      // Files are named from there in what it says.
      absWorkingDir: dirname(file),
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      // As without a bundler: a tsconfig.json in a folder above must not matter.
      tsconfigRaw: {},
      logLevel: 'silent',
      ...options,
    });
    const { outputFiles } = await made.finally(stop);
    return outputFiles?.[0]?.text ?? '';
  });
  last = done.catch(() => undefined);
  return done;
}

/** What the process of an isolated plugin runs: the plugin, what it imports, and what talks to the service, as one module. @throws PluginProblem */
export async function bundlePlugin(url: string): Promise<string> {
  const file = fileURLToPath(url);
  const contents = `import { run } from ${JSON.stringify(main)};\nrun(() => import(${JSON.stringify(file)}));\n`;
  const options: BuildOptions = {
    stdin: { contents, resolveDir: dirname(file), sourcefile: 'isolated-plugin.js' },
    sourcemap: 'inline',
    // What it throws names its files.
    sourceRoot: `${pathToFileURL(dirname(file)).href}/`,
    sourcesContent: false,
    outfile: join(dirname(file), 'isolated-plugin.js'),
    target: 'node20',
    // Packages in CommonJS require what node has.
    banner: { js: `import { createRequire as from } from 'node:module'; const require = from('file:///plugin.js');` },
    plugins: [ownSdk],
  };
  return await bundle(file, options).catch((error: unknown) => {
    throw new PluginProblem(problemOf(faultOf(error)));
  });
}

/**
 * Finds what is no JavaScript in a file, and in what it imports by a path. Node names neither file nor line of that.
 * @returns nothing where there is no such fault.
 */
export async function syntaxFault(url: string): Promise<string | undefined> {
  const file = fileURLToPath(url);
  return bundle(file, { entryPoints: [file], packages: 'external' }).then(() => undefined, faultOf);
}

function problemOf(fault: string): string {
  const [, addon] = /^No loader is configured for "\.node" files: (.*?)(?: \(.*\))?$/.exec(fault) ?? [];
  return addon === undefined
    ? `cannot be bundled: ${fault}`
    : `uses the native addon ${addon} and cannot be isolated: the process of an isolated plugin may load none`;
}

/** The first error of the bundler, with its file and line. */
function faultOf(error: unknown): string {
  const { errors: [first] = [], message } = error as Partial<BuildFailure>;
  const { text = String(message), location } = first ?? {};
  return location ? `${text} (${location.file}:${location.line})` : text;
}
