import { missingScheme } from '../../lib/http/target.ts';
import { apiPath, type CheckContext, type EndpointDraft, error, type Finding, keys } from '../../plugins-sdk/config.ts';
import { apiHeaders, checkHeader } from '../shared/api-headers.ts';
import { checkUrl } from '../shared/check-url.ts';
import { firstOfApis } from '../shared/upstream.ts';
import { checkTls } from '../shared/upstream-tls.ts';

const INSTEAD = { credentials: ': use headers', query: ': use parameters' };

function checkBase(endpoint: EndpointDraft): Finding[] {
  const at = `${apiPath(endpoint)}.url`;
  const text = keys.url.of(endpoint) ?? '';
  const missing = missingScheme(text);
  if (missing !== undefined) return [error(at, missing)];
  if (URL.canParse(text) && !/^https?:/i.test(text)) return [error(at, 'must be an http or https URL')];
  if (/[\s\\\p{Cc}]/u.test(text)) return [error(at, 'holds a character that must be percent-encoded')];
  return checkUrl(at, text, 'change what gets signed, or read what is sent', INSTEAD);
}

function checkPath(endpoint: EndpointDraft): Finding[] {
  const path = keys.path.of(endpoint) ?? '';
  const [pathname = ''] = path.split('?');
  const at = `${endpoint.path}.path`;
  if (path.includes('#')) return [error(at, 'must hold no fragment')];
  if (/[\s\\\p{Cc}]/u.test(path)) return [error(at, 'holds a character that must be percent-encoded')];
  if (pathname.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment)))
    return [error(at, 'must hold no . or .. segment')];
  return [];
}

function* checkHeaders(endpoint: EndpointDraft): Iterable<Finding> {
  const at = `${apiPath(endpoint)}.headers`;
  const headers = Object.entries(apiHeaders(endpoint));
  const names = headers.map(([name]) => name.toLowerCase());
  for (const [i, [name, value]] of headers.entries()) {
    if (names.indexOf(name.toLowerCase()) < i) yield error(`${at}.${name}`, 'is there twice: case does not count');
    yield* checkHeader(`${at}.${name}`, name, value);
    yield* checkBasic(endpoint, name, `${at}.${name}`);
  }
}

function* checkBasic(endpoint: EndpointDraft, name: string, at: string): Iterable<Finding> {
  const value = keys.headers.of(endpoint)?.[name];
  if (value === undefined || typeof value === 'string') return;
  if (value.basic.user.includes(':')) yield error(`${at}.basic.user`, 'must hold no colon: the password begins there');
  for (const [key, text] of Object.entries(value.basic))
    if (/\p{Cc}/u.test(text)) yield error(`${at}.basic.${key}`, 'must hold no line break or other control character');
}

/** Checks the URLs, headers, certificates and paths of a config; what an API's endpoints share is checked once. */
export function check({ endpoints }: CheckContext): Finding[] {
  const first = firstOfApis(endpoints);
  return [
    ...first.flatMap(checkBase),
    ...first.flatMap((endpoint) => [...checkHeaders(endpoint)]),
    ...first.flatMap((endpoint) => checkTls(endpoint, apiPath(endpoint))),
    ...endpoints.flatMap(checkPath),
  ];
}
