import type { IncomingMessage } from 'node:http';

/**
 * Whether a request names one host, as it must since HTTP/1.1; whoever is in front may have looked at another one of several
 * than those behind do (RFC 9112, section 3.2).
 */
export function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1');
}
