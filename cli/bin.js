#!/usr/bin/env node
import { existsSync } from 'node:fs';

// By default SIGUSR1 makes node open its inspector, which would expose the key to anyone who can connect.
process.on('SIGUSR1', () => undefined);
// A SIGHUP during the start is ignored: the files have not been read yet, so there is nothing to reload.
if (process.argv[2] === 'start') process.on('SIGHUP', () => undefined);

// Runs the built program if it is beside this file, else the source.
const built = new URL('../program/main.js', import.meta.url);
if (existsSync(built)) await import(built.href);
else {
  await import('tsx');
  await import(new URL('./main.ts', import.meta.url).href);
}
