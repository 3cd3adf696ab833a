#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { register } from 'node:module';

/** What the service starts with. tsx would pass each of their hundreds of files to a thread and back. */
const LIBRARIES = [
  'typebox',
  'typebox/value',
  'typebox/compile',
  'koa',
  '@koa/router',
  'cac',
  'dotenv',
  'hash-wasm',
  'ipaddr.js',
  'pino',
  'tapable',
  'yaml',
];

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));

/** Where typebox is in a few files, by specifier, and for whom: nowhere, if the install made none for the version in use. */
function bundledTypebox() {
  try {
    const { version, modules, files, importers } = read('../node_modules/.cache/typebox/modules.json');
    if (version !== read('../node_modules/typebox/package.json').version) return undefined;
    const folder = new URL('../node_modules/.cache/typebox/', import.meta.url);
    if (!files.every((file) => existsSync(new URL(file, folder)))) return undefined;
    return {
      targets: Object.fromEntries(Object.entries(modules).map(([part, file]) => [part, new URL(file, folder).href])),
      importers: importers.map((name) => new URL(`../${name}/`, import.meta.url).href),
    };
  } catch {
    return undefined;
  }
}

async function startFromSource() {
  const bundled = bundledTypebox();
  await Promise.all(LIBRARIES.map((name) => import(bundled?.targets[name] ?? name)));
  if (bundled !== undefined) register('../scripts/redirect.js', import.meta.url, { data: bundled });
  await import('tsx');
  await import(new URL('./main.ts', import.meta.url).href);
}

// A reload that is asked for while the service starts: what it would read has not been read yet.
if (process.argv[2] === 'start') process.on('SIGHUP', () => undefined);

const compiled = new URL('./main.js', import.meta.url);
if (existsSync(compiled)) await import(compiled.href);
else await startFromSource();
