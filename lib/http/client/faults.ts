import { undiciErrors } from '../../process/packages.ts';
import { RequestFailure, type RequestPhase } from './request.ts';

/** Makes the failure of a proxy that opened no way to the server. */
export const proxyFault = (message: string) => new RequestFailure('network', message);

/** The error codes of a connection that the server closed. */
export const CLOSED_BY_PEER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

const UNKNOWN = 'the connection failed';
const HTTP2_ONLY = 'it speaks HTTP/2 only, which this service does not';
const CUT_SHORT = 'the connection was closed before the answer was complete';

/** The texts for error codes, which are separated by spaces. */
const EXPLANATIONS: readonly (readonly [codes: string, text: string])[] = [
  ['ECONNREFUSED', 'the connection was refused'],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the connection was closed'],
  ['ENOTFOUND', 'the host name is unknown'],
  ['EAI_AGAIN', 'the host name could not be looked up'],
  ['ETIMEDOUT', 'nobody answers at that address'],
  ['EHOSTUNREACH ENETUNREACH', 'there is no way to that address'],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT_LOCALLY SELF_SIGNED_CERT_IN_CHAIN DEPTH_ZERO_SELF_SIGNED_CERT',
    'its certificate is of no authority that this process trusts',
  ],
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for other names'],
  [
    'UNABLE_TO_GET_ISSUER_CERT',
    'its certificate leads to one that is not in ca: write the root there, beside the intermediate',
  ],
  ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', HTTP2_ONLY],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'it speaks no TLS of version 1.2 or later'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'no TLS is spoken at that port: write http:// in the url, or the port for https'],
  ['UND_ERR_SOCKET', CUT_SHORT],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'the body is not as long as announced'],
  ['UND_ERR_HEADERS_OVERFLOW', 'the headers of the answer are too large'],
  ['UND_ERR_INVALID_ARG', 'the request is not valid HTTP'],
  ['UND_ERR_NOT_SUPPORTED', 'the request has a header that is not supported'],
];

/** Whether bytes are a short SETTINGS or GOAWAY frame, with which an HTTP/2 server begins (RFC 9113, section 4.1). */
function isHttp2(bytes: string): boolean {
  return bytes.startsWith('\0\0') && ['\u0004', '\u0007'].includes(bytes.charAt(3)) && bytes.slice(5, 9) === '\0\0\0\0';
}

/** Texts for undici's messages about servers that send something unasked. */
const UNASKED = new Map([
  ['bad response', 'it sent 100 Continue unasked'],
  ['bad upgrade', 'it turned to another protocol unasked'],
]);

/** Describes an error by its code and by constant texts, since undici's own messages can quote what was sent. */
export function faultText(error: Error): string {
  if (error instanceof RequestFailure) return error.message;
  if (error instanceof undiciErrors().HTTPParserError) return parserText(error);
  const code = codeOf(error);
  const unasked = code === 'UND_ERR_SOCKET' ? UNASKED.get(error.message) : undefined;
  if (unasked !== undefined) return unasked;
  const [, text = UNKNOWN] = EXPLANATIONS.find(([codes]) => codes.split(' ').includes(code)) ?? [];
  return code ? `${text} (${code})` : text;
}

/** As {@link faultText}, for an error after the answer was complete. */
export function endFaultText(error: Error): string {
  return UNASKED.has(error.message) ? 'it went on after the end of the answer' : faultText(error);
}

function parserText(error: Error): string {
  if ('data' in error && isHttp2(String(error.data))) return HTTP2_ONLY;
  const code = codeOf(error);
  return code === 'HPE_INVALID_EOF_STATE' ? CUT_SHORT : `the answer is not valid HTTP (${code})`;
}

/** Returns the phase in which a request failed before it was sent. */
export function phaseOf(error: Error): Exclude<RequestPhase, 'answer'> {
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns';
  if (error.message.includes('before secure TLS connection')) return 'tls';
  return /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|EPROTO)/.test(code) ? 'tls' : 'connect';
}

/** Returns the error's code, or an empty text if it has none. */
export function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(error.code) ? error.code : '';
}
