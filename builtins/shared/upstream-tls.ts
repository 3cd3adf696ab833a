import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { pemText } from '../../lib/text.ts';
import {
  checkAuthorities,
  closedObject,
  type EndpointDraft,
  error,
  type Finding,
  keys,
  optionalKey,
  warning,
} from '../../plugins-sdk/config.ts';
import { type Endpoint, Type } from '../../plugins-sdk/index.ts';
import type { Meters } from '../../plugins-sdk/observe.ts';

const pem = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));

/** The config key for certificates, for an upstream and its token endpoint over https. */
export const tlsKey = optionalKey(
  'api',
  'tls',
  closedObject(
    {
      cert: pem('Client certificate with its chain, in PEM'),
      key: pem('Private key of cert, in PEM; keep it in a variable'),
      ca: pem('Trusted authorities, in PEM, in place of those of Node.js'),
      servername: Type.Optional(
        Type.String({
          minLength: 1,
          description: "Name to ask for, and in the upstream's certificate; default the host of the URL",
        }),
      ),
    },
    'Certificates, for https',
  ),
);

/** Returns the certificates and the key of an API in the form that Node.js reads. */
export function tlsOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): Readonly<Record<string, string>> | undefined {
  const tls = tlsKey.of(endpoint);
  return tls && Object.fromEntries(Object.entries(tls).map(([name, text]) => [name, pemText(text)]));
}

const endOf = (cert: string) => Date.parse(new X509Certificate(cert).validTo);

/** Exports when the first client certificate expires; NaN if there is none. */
export function certificateMeter(endpoints: readonly Endpoint[], meters: Meters): void {
  const ends = endpoints.flatMap((endpoint) => tlsOf(endpoint)?.cert ?? []).map(endOf);
  meters.gauge(
    {
      name: 'upstream_certificate_ends_seconds',
      help: 'Unix time at which the first certificate of tls.cert ends; NaN without any',
      across: 'min',
    },
    () => (ends.length === 0 ? Number.NaN : Math.min(...ends) / 1000),
  );
}

/** Returns the faults of an API's certificates. @param at its config path. */
export function checkTls(endpoint: EndpointDraft, at: string): Finding[] {
  const tls = tlsOf(endpoint);
  if (tls === undefined) return [];
  const { servername = '', ...pems } = tls;
  const { cert, key, ca } = pems;
  if (!/^https:/i.test(keys.url.of(endpoint) ?? '')) return [error(`${at}.tls`, 'needs an https URL')];
  if ((cert === undefined) !== (key === undefined))
    return [error(`${at}.tls.${cert === undefined ? 'cert' : 'key'}`, 'is missing: cert and key go together')];
  if (isIP(servername) !== 0) return [error(`${at}.tls.servername`, 'must be a host name, not an address')];
  if (!/^[\w.-]*$/.test(servername))
    return [error(`${at}.tls.servername`, 'must be a host name, without scheme or port')];
  const names = Object.entries(pems).flatMap(([name, text]) => (text.includes('-----BEGIN ') ? [] : name));
  if (names.length > 0) {
    const message = 'must be the text in PEM, not the name of a file: have it come from a variable';
    return names.map((name) => error(`${at}.tls.${name}`, message));
  }
  try {
    createSecureContext(pems);
    // The context ignores an authority that it cannot read, so it is parsed here, too.
    if (ca !== undefined) new X509Certificate(ca);
  } catch {
    // OpenSSL's message names neither the field nor the remedy.
    return [
      error(`${at}.tls`, 'cannot be used: cert, key and ca must be PEM texts, and cert be the certificate of key'),
    ];
  }
  const isOver = cert !== undefined && endOf(cert) < Date.now();
  return [...(isOver ? [warning(`${at}.tls.cert`, 'has expired')] : []), ...checkAuthorities(`${at}.tls.ca`, ca)];
}
