import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { atMostEvery } from '../../lib/time/at-most-every.ts';
import { type HttpResponse, JsonText, type Log } from '../../plugins-sdk/index.ts';
import type { Page } from './server.ts';

/** Milliseconds in which hosts that are refused are worth one line. */
const QUIET_MS = 60_000;
/** Characters of a host in the log: a client has chosen them. */
const MAX_HOST = 100;

const NOT_ALLOWED: HttpResponse = {
  status: 403,
  body: JsonText.stringify({ error: 'Host not allowed: the operator can add it to settings.metrics.hosts' }),
};

/** `name`, `name:port` or `[address]:port`, as a `Host` header has it (RFC 9110, section 7.2). */
const HOST = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/;

/** A name as it is compared: in lower case and without the dot of the root. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

function isAllowed({ headersDistinct }: IncomingMessage, names: ReadonlySet<string>): boolean {
  const [host = '', ...others] = headersDistinct.host ?? [];
  const [, address, name = ''] = HOST.exec(host) ?? [];
  if (others.length > 0) return false;
  if (address !== undefined) return isIP(address) === 6;
  return isIP(plainName(name)) === 4 || names.has(plainName(name));
}

/**
 * Shows a page to those alone who ask at an IP address, at `localhost` or at one of these names. A page of another site can have
 * its own name lead here, and its browser then asks at that name (DNS rebinding).
 */
export function hostGuard(hosts: readonly string[], log: Log): (page: () => ReturnType<Page>) => Page {
  const names = new Set(['localhost', ...hosts.map(plainName)]);
  const message = 'the metrics were asked at a host that is not in settings.metrics.hosts';
  const warn = atMostEvery(QUIET_MS, (host: string) => log.warn(message, { host: host.slice(0, MAX_HOST) }));
  return (page) => (request) => {
    if (isAllowed(request, names)) return page();
    warn(request.headers.host ?? '');
    return NOT_ALLOWED;
  };
}
