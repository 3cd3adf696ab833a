import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { atMostEvery } from '../../lib/time.ts';
import type { Log } from '../../plugins-sdk/index.ts';
import { type Page, refusal } from './server.ts';

/** Milliseconds between two log lines on refused hosts. */
const QUIET_MS = 60_000;
/** The most characters of a host in the log, since a client has chosen them. */
const MAX_HOST = 100;

const NOT_ALLOWED = refusal(403, 'Host not allowed: the operator can add it to settings.metrics.hosts');

/** Matches `name`, `name:port` or `[address]:port` of a `Host` header (RFC 9110, section 7.2). */
const HOST = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/;

/** Returns a name in the form for comparisons: lower case, without the root's dot. */
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
 * Guards a page against DNS rebinding: another site can let its own name resolve to this address, and its visitors'
 * browsers then send that name. Only IP addresses, `localhost` and the given names are accepted as host.
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
