#!/usr/bin/env node
import { existsSync } from 'node:fs';

const compiled = new URL('./main.js', import.meta.url);
if (existsSync(compiled)) {
  await import(compiled.href);
} else {
  const { register } = await import('tsx/esm/api');
  register();
  await import(new URL('./main.ts', import.meta.url).href);
}
