/**
 * For `node --import`: what tests need to run. The libraries that nearly all of them import are loaded before tsx is there,
 * which would pass each of their 1,000 files to a thread and back; nor is their coverage prepared, by reading source maps.
 */
const LIBRARIES = ['typebox', 'typebox/value', 'typebox/compile', 'ethers', 'koa', '@koa/router', 'tapable', 'yaml'];

const { NODE_V8_COVERAGE: folder } = process.env;
delete process.env.NODE_V8_COVERAGE;
await Promise.all(LIBRARIES.map((name) => import(name)));
if (folder !== undefined) process.env.NODE_V8_COVERAGE = folder;
await import('tsx');
