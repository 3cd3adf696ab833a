#!/usr/bin/env node
import { existsSync } from 'node:fs';

/** What the service starts with. tsx would pass each of their thousand files to a thread and back. */
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

const compiled = new URL('./main.js', import.meta.url);
if (existsSync(compiled)) {
  await import(compiled.href);
} else {
  await Promise.all(LIBRARIES.map((name) => import(name)));
  await import('tsx');
  await import(new URL('./main.ts', import.meta.url).href);
}
