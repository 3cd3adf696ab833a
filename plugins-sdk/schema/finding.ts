import type { Finding } from '../define.ts';

/** What stops the start. */
export function errorAt(path: string, message: string): Finding {
  return { level: 'error', path, message };
}

/** What an operator is told, and may leave as it is. */
export function warningAt(path: string, message: string): Finding {
  return { level: 'warning', path, message };
}
