import { isLoopback } from './target.ts';

/** Whether others can read what is sent to a URL: over plain HTTP, and beyond this machine. */
export function isReadableOnTheWay(text: string | undefined): boolean {
  if (text === undefined || !URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'http:' && !isLoopback(hostname);
}
