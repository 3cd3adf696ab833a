import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';
import { filesOf } from '../../../test/support/docs.ts';
import { fail, root, run } from './run.ts';
import { installedIn } from './tarball.ts';

/** Folders of projects that use a package each. */
export interface Projects {
  readonly verify: string;
  readonly plugin: string;
  readonly service: string;
}

/** Bytes that the verifier may take in a browser, minified, and compressed by gzip. */
const ROOM = { minified: 48_000, compressed: 19_000 };

const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');

/** An empty project into which a tarball and some of the tools of this one are installed. */
function project(folder: string, name: string, tarball: string, ...tools: string[]): string {
  const { dependencies, devDependencies }: Record<string, Record<string, string>> = JSON.parse(read('package.json'));
  const versions = { ...dependencies, ...devDependencies };
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'package.json'), '{ "private": true, "type": "module" }');
  const wanted = tools.map((tool) => `${tool}@${versions[tool]}`);
  run(path, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball, ...wanted);
  return path;
}

/** The files in code that a page shows; tests run them, and here their types are checked. */
function saveShown(path: string, page: string): void {
  for (const [name, text] of filesOf(page)) if (/\.[jt]s$/.test(name)) writeFileSync(join(path, name), text);
}

const checkTypes = (path: string) => run(path, join(path, 'node_modules', '.bin', 'tsc'), '-p', path);

/** Has nothing but the verifier; a bundle of it is what a page in a browser would load. */
export function makeVerifyProject(folder: string, tarball: string): string {
  const path = project(folder, 'verify', tarball);
  const installed = installedIn(path).toSorted().join(', ');
  if (installed !== '@noble/curves, @noble/hashes, signed-data-proxy-verify') fail(`installed were ${installed}`);
  saveShown(path, read('tools', 'packages', 'verify', 'README.md'));
  const contents = "import * as all from 'signed-data-proxy-verify'; globalThis.verify = all;";
  const { outputFiles } = buildSync({
    stdin: { contents, resolveDir: path },
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    write: false,
    logLevel: 'silent',
  });
  const bytes = outputFiles[0]?.contents ?? fail('there is no bundle');
  const size = { minified: bytes.length, compressed: gzipSync(bytes).length };
  console.log(`        in a browser: ${size.minified} bytes minified, ${size.compressed} compressed`);
  if (size.minified > ROOM.minified || size.compressed > ROOM.compressed) fail('the verifier has become too large');
  return path;
}

/** Compiles the contract of its page against the package, as found in `node_modules`. */
export function compileShown(folder: string, tarball: string): void {
  const path = project(folder, 'contracts', tarball, 'solc');
  for (const [name, text] of filesOf(read('tools', 'packages', 'contracts', 'README.md')))
    writeFileSync(join(path, name), text);
  const places = ['--base-path', '.', '--include-path', 'node_modules'];
  run(path, join(path, 'node_modules', '.bin', 'solcjs'), 'Consumer.sol', '--bin', ...places);
  const made = readFileSync(join(path, 'Consumer_sol_Consumer.bin'), 'utf8');
  if (!/^60[0-9a-f]{1000,}$/.test(made)) fail(`solc made ${made.slice(0, 20)}… of Consumer.sol`);
}

/** Plugins of the SDK's page and of the tests, with nothing of the service but the SDK. */
export function makePluginProject(folder: string, tarball: string): string {
  const path = project(folder, 'plugin', tarball, 'typescript', 'tsx', '@types/node');
  cpSync(join(root, 'test', 'package', 'plugin'), path, { recursive: true });
  saveShown(path, read('tools', 'packages', 'plugins-sdk', 'README.md'));
  checkTypes(path);
  run(path, process.execPath, '--import', 'tsx', '--test', 'floor.test.ts', 'tenants.trial.ts');
  return path;
}

export function makeServiceProject(folder: string, tarball: string): string {
  const path = project(folder, 'service', tarball, 'typescript', '@types/node');
  cpSync(join(root, 'test', 'package', 'consumer'), path, { recursive: true });
  saveShown(path, read('docs', 'plugins.md'));
  return path;
}

/** The plugin that `plugin new` writes passes the test that comes with it. */
export function writePlugin(path: string): void {
  run(path, 'npx', 'signed-data-proxy', '--help');
  const said = run(path, 'npx', 'signed-data-proxy', 'plugin', 'new', 'my-plugin');
  const [, command] = /^ {2}(node --import .*)$/m.exec(said) ?? fail(`plugin new says no command:\n${said}`);
  const [program = '', ...args] = command?.split(' ') ?? [];
  run(path, program, ...args);
  checkTypes(path);
}
