import type { Finding } from '../define.ts';

export function errorAt(path: string, message: string): Finding {
  return { level: 'error', path, message };
}

export function warningAt(path: string, message: string): Finding {
  return { level: 'warning', path, message };
}
