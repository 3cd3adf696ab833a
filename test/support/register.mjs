import { readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/**
 * For `node --import`: what tests need to run. The libraries that nearly all of them import are loaded before tsx is there,
 * which would pass each of their 1,000 files to a thread and back; nor is their coverage prepared, by reading source maps.
 */
const LIBRARIES = ['typebox', 'typebox/value', 'typebox/compile', 'ethers', 'koa', '@koa/router', 'tapable', 'yaml'];
/** The same for tests of x402-exact, where the file that is run is one or names one. */
const PAYMENTS = ['viem', '@x402/core/facilitator', '@x402/evm/exact/facilitator', '@x402/fetch'];
const [, run] = process.argv;
const sells = isMainThread && /\.[mt]s$/.test(run ?? '') && readFileSync(run, 'utf8').includes('x402-exact');

const { NODE_V8_COVERAGE: folder } = process.env;
delete process.env.NODE_V8_COVERAGE;
await Promise.all([...LIBRARIES, ...(sells ? PAYMENTS : [])].map((name) => import(name)));
if (folder !== undefined) process.env.NODE_V8_COVERAGE = folder;
await import('tsx');
