#!/usr/bin/env node
import { existsSync } from 'node:fs';

/** The program in few files, or, where none can be written, its source through tsx. */
async function fromSource() {
  try {
    const { program } = await import('./program.js');
    const url = await program();
    process.setSourceMapsEnabled(true);
    return url;
  } catch {
    await import('tsx');
    return new URL('./main.ts', import.meta.url).href;
  }
}

// Node would open its inspector, and with it the key, to whoever can connect.
process.on('SIGUSR1', () => undefined);
// A reload that is asked for while the service starts: what it would read has not been read yet.
if (process.argv[2] === 'start') process.on('SIGHUP', () => undefined);

const built = new URL('../program/main.js', import.meta.url);
await import(existsSync(built) ? built.href : await fromSource());
