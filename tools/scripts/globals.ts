/** What the bundled program uses in place of node's globals of these names, which are accessors: each use calls a function. */
export { Buffer } from 'node:buffer';
export { performance } from 'node:perf_hooks';
export { default as process } from 'node:process';
