import { parseAddress } from './client-address.ts';

/** Whether others can read what is sent to a URL: over plain HTTP, and beyond this machine. */
export function isReadableOnTheWay(text: string | undefined): boolean {
  if (text === undefined || !URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  if (protocol !== 'http:') return false;
  const address = parseAddress(hostname.replace(/^\[|\]$/g, ''));
  // RFC 6761, section 6.3; RFC 1122, section 3.2.1.3; RFC 4291, section 2.5.3.
  if (address === undefined) return !/(?:^|\.)localhost\.?$/.test(hostname);
  return address !== '::1' && !address.startsWith('127.');
}
