import { dirname, extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BuildFailure, BuildOptions, Plugin } from 'esbuild';
import { loadedInTime, PluginProblem } from '../plugin-problem.ts';

const own = fileURLToPath(import.meta.url);
const main = fileURLToPath(new URL(`./child${extname(own)}`, import.meta.url));

/** Resolves the SDK to that of the running service, as for plugins inside the service. */
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

/** The latest bundle. They are made one at a time, because each stops the bundler's own process at its end. */
let last: Promise<unknown> = Promise.resolve();

/** Bundles a file and its imports into one module. @throws BuildFailure */
function bundle(file: string, options: BuildOptions): Promise<string> {
  const done = last.then(async () => {
    const { build, stop } = await import('esbuild');
    const made = build({
      // The bundler's messages name files relative to this folder.
      absWorkingDir: dirname(file),
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      // A tsconfig.json in a folder above must not matter, as it does not without a bundler.
      tsconfigRaw: {},
      logLevel: 'silent',
      ...options,
    });
    const { outputFiles } = await loadedInTime(made).finally(stop);
    return outputFiles?.[0]?.text ?? '';
  });
  last = done.catch(() => undefined);
  return done;
}

/**
 * Bundles the code of an isolated plugin's process into one module: the plugin, its imports, and our code that talks to the
 * service.
 * @throws PluginProblem
 */
export async function bundlePlugin(url: string): Promise<string> {
  const file = fileURLToPath(url);
  const contents = `import { run } from ${JSON.stringify(main)};\nrun(() => import(${JSON.stringify(file)}));\n`;
  const options: BuildOptions = {
    stdin: { contents, resolveDir: dirname(file), sourcefile: 'isolated-plugin.js' },
    sourcemap: 'inline',
    // The stacks of its errors name the plugin's files.
    sourceRoot: `${pathToFileURL(dirname(file)).href}/`,
    sourcesContent: false,
    outfile: join(dirname(file), 'isolated-plugin.js'),
    target: 'node20',
    // Bundled CommonJS packages call `require` for node's own modules.
    banner: { js: `import { createRequire as from } from 'node:module'; const require = from('file:///plugin.js');` },
    plugins: [ownSdk],
  };
  return await bundle(file, options).catch((error: unknown) => {
    throw new PluginProblem(problemOf(faultOf(error)));
  });
}

/**
 * Finds a syntax error in a file, or in a file that it imports by a path. Node's own error names neither file nor line.
 * @returns `undefined` if there is none.
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

/** Returns the first error of the bundler, with its file and line. */
function faultOf(error: unknown): string {
  const { errors: [first] = [], message } = error as Partial<BuildFailure>;
  const { text = String(message), location } = first ?? {};
  return location ? `${text} (${location.file}:${location.line})` : text;
}
