import type { Finding } from '../define.ts';

/** Makes a finding that stops the start. */
export function errorAt(path: string, message: string): Finding {
  return { level: 'error', path, message };
}

/** Makes a finding that does not stop the start. */
export function warningAt(path: string, message: string): Finding {
  return { level: 'warning', path, message };
}
