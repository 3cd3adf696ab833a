/**
 * For `node --import`: what tests need to run. The libraries that nearly all of them import are loaded before tsx is there,
 * which would pass each of their 1,000 files to a thread and back. That thread runs no code that coverage is measured of.
 */
const LIBRARIES = [
  'typebox',
  'typebox/value',
  'typebox/compile',
  'ethers',
  'koa',
  '@koa/router',
  'pino',
  'tapable',
  'yaml',
];

await Promise.all(LIBRARIES.map((name) => import(name)));
const { NODE_V8_COVERAGE: folder } = process.env;
delete process.env.NODE_V8_COVERAGE;
await import('tsx');
if (folder !== undefined) process.env.NODE_V8_COVERAGE = folder;
