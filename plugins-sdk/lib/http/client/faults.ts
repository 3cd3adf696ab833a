import { undici } from '../../process/lazy.ts';

/** A proxy gave no way to the server. Its message is fit for a log, and it has no code: nothing is sent again for it. */
export class ProxyFailure extends Error {
  override readonly name = 'ProxyFailure';
}

/** undici misses the body of a 304 that states a length, which is the length that a 200 would have (RFC 9110, 8.6). */
export function isBodilessMismatch(error: Error, status: number, hasBody: boolean): boolean {
  return status >= 200 && !hasBody && codeOf(error) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH';
}

export const CLOSED_BY_PEER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

const UNTRUSTED = 'its certificate is of no authority that this process trusts';

const OLD_TLS = 'it speaks no TLS of version 1.2 or later';

const EXPLANATIONS = new Map([
  ['ECONNREFUSED', 'the connection was refused'],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the connection was closed'],
  ['ENOTFOUND', 'the host name is unknown'],
  ['EAI_AGAIN', 'the host name could not be looked up'],
  ['ETIMEDOUT', 'nobody answers at that address'],
  ['EHOSTUNREACH', 'there is no way to that address'],
  ['ENETUNREACH', 'there is no way to that address'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNTRUSTED],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNTRUSTED],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNTRUSTED],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNTRUSTED],
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for other names'],
  [
    'UNABLE_TO_GET_ISSUER_CERT',
    'its certificate leads to one that is not in ca: write the root there, beside the intermediate',
  ],
  ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', 'it speaks HTTP/2 only, which this service does not'],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL', OLD_TLS],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', OLD_TLS],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'no TLS is spoken at that port: write http:// in the url, or the port for https'],
  ['UND_ERR_SOCKET', 'the connection was closed before the answer was complete'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'the body is not as long as announced'],
  ['UND_ERR_HEADERS_OVERFLOW', 'the headers of the answer are too large'],
  ['UND_ERR_INVALID_ARG', 'the request is not valid HTTP'],
  ['UND_ERR_NOT_SUPPORTED', 'the request has a header that is not supported'],
]);

/** Says what happened by the error's code alone: the messages of undici and llhttp can quote what was sent. */
export function faultText(error: Error): string {
  if (error instanceof ProxyFailure) return error.message;
  const code = codeOf(error);
  if (error instanceof undici().errors.HTTPParserError) return `the answer is not valid HTTP${parserText(error)}`;
  if (code === 'UND_ERR_SOCKET' && error.message === 'bad response') return 'it sent 100 Continue unasked';
  return code ? `${EXPLANATIONS.get(code) ?? 'the connection failed'} (${code})` : 'the connection failed';
}

/** The parser's own words, which are constants; undici has lost the code that goes with them. */
function parserText({ message }: Error): string {
  const [, words] = /^Response does not match the HTTP\/1\.1 protocol \(([\w `'/:,-]{1,80})\)$/.exec(message) ?? [];
  return words === undefined ? '' : ` (${words})`;
}

/** Whether the server has said something, though nothing that can be read. */
export function isUnreadable(error: Error): boolean {
  return error instanceof undici().errors.HTTPParserError || codeOf(error) === 'UND_ERR_HEADERS_OVERFLOW';
}

export function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(error.code) ? error.code : '';
}
