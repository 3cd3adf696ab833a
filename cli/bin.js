#!/usr/bin/env node
import { existsSync } from 'node:fs';

// Node would open its inspector, and with it the key, to whoever can connect.
process.on('SIGUSR1', () => undefined);
// A reload that is asked for while the service starts: what it would read has not been read yet.
if (process.argv[2] === 'start') process.on('SIGHUP', () => undefined);

// The program in few files, where they were built beside this one; else its source.
const built = new URL('../program/main.js', import.meta.url);
if (existsSync(built)) await import(built.href);
else {
  await import('tsx');
  await import(new URL('./main.ts', import.meta.url).href);
}
