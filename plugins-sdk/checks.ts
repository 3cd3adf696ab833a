import { X509Certificate } from 'node:crypto';
import { isAddress } from '../lib/eth/hex.ts';
import { isReadableOnTheWay } from '../lib/http/target.ts';
import { type CheckContext, type EndpointDraft, errorAt, type Finding, warningAt } from './define.ts';
import { keys, type Parameter } from './keys.ts';

/** Finds a wrong EIP-55 checksum of an address. */
export function checkAddress(path: string, address: string): Finding[] {
  return isAddress(address) ? [] : [errorAt(path, 'the checksum of the address is wrong (EIP-55)')];
}

/**
 * Warns of plain HTTP to another machine.
 * @param harm what a machine on the way could do, such as "change what gets signed".
 */
export function checkPlainHttp(path: string, url: string | undefined, harm: string): Finding[] {
  return isReadableOnTheWay(url) ? [warningAt(path, `is plain HTTP: anyone on the way could ${harm}; use https`)] : [];
}

const NO_ROOT = 'holds no root certificate, so that no server is trusted: add the one that signed it';

/** Warns if a PEM text holds certificates but no root: TLS trusts only the given roots. */
export function checkAuthorities(path: string, pem: string | undefined): Finding[] {
  const texts = pem?.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return texts.length === 0 || texts.some(isRoot) ? [] : [warningAt(path, NO_ROOT)];
}

function isRoot(certificate: string): boolean {
  try {
    const { subject, issuer } = new X509Certificate(certificate);
    return subject === issuer;
  } catch {
    // TLS, too, skips a certificate that it cannot read.
    return false;
  }
}

/** Finds a port, brackets, or the start of a URL in a host to listen on. */
export function checkHost(path: string, host: string | undefined): Finding[] {
  const [, bare] = /^\[(.*)\]$/.exec(host ?? '') ?? [];
  if (bare !== undefined) return [errorAt(path, `has brackets, which belong to URLs: write ${bare}`)];
  const [, address, name = address, port] = /^(?:\[(.*)\]|([^:]+)):(\d+)$/.exec(host ?? '') ?? [];
  if (port !== undefined) return [errorAt(path, `holds a port: write host: ${name} and port: ${port}`)];
  return /[\s/*]/.test(host ?? '') ? [errorAt(path, 'is no address: write 127.0.0.1, or 0.0.0.0 for all')] : [];
}

/** Returns the config path of an endpoint's API. */
export function apiPath({ path }: Pick<EndpointDraft, 'path'>): string {
  return path.replace(/\.endpoints\[\d+\]$/, '');
}

/** Returns the config path of an endpoint's auth object. */
export function authPath(endpoint: EndpointDraft, index: number): string {
  const { block, apiBlock, path } = endpoint;
  const isOwn = block.auth !== undefined && block.auth !== null;
  const at = `${isOwn ? path : apiPath(endpoint)}.auth`;
  return Array.isArray(isOwn ? block.auth : apiBlock.auth) ? `${at}[${index}]` : at;
}

/** A parameter as declared in the config, with defaults filled in. */
export interface DeclaredParameter extends Parameter {
  readonly in: 'query' | 'header' | 'path' | 'cookie' | 'body' | 'none';
  readonly required: boolean;
  readonly secret: boolean;
  /** Its config path. */
  readonly at: string;
}

/** Returns an endpoint's parameters with defaults filled in. A parameter whose fixed value comes from a variable is secret. */
export function declaredParameters(endpoint: EndpointDraft, { interpolated }: CheckContext): DeclaredParameter[] {
  return (keys.parameters.of(endpoint) ?? []).map((parameter, index) => {
    const at = `${endpoint.path}.parameters[${index}]`;
    const { in: place = 'query', required = false, secret = false } = parameter;
    return { ...parameter, in: place, required, secret: secret || interpolated(`${at}.fixed`), at };
  });
}

/** Lower-case header names that belong to the connection or to the HTTP client. */
export const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'te'],
  // The HTTP client refuses to send these.
  ...['keep-alive', 'expect'],
]);

/** Returns whether a text can be the name of a header or a method (RFC 9110, section 5.6.2). */
export function isToken(text: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text);
}

/** Finds a header name that is invalid or must not be configured. */
export function checkHeaderName(path: string, name: string): Finding[] {
  if (!isToken(name)) return [errorAt(path, 'is no valid header name')];
  if (RESERVED_HEADERS.has(name.toLowerCase())) return [errorAt(path, `the header ${name} cannot be configured`)];
  return [];
}

/** Returns whether a header can carry a text: visible Latin-1, spaces and tabs (RFC 9110, section 5.5). */
export function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
