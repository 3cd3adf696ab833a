import { clipped } from '../../lib/text.ts';

/** Most characters of a reason in the log. */
const LONGEST_REASON = 500;

/** Most errors of a chain of causes that a reason includes. */
const DEEPEST = 5;

/**
 * Describes an error in one bounded line for the log. The SDK wraps errors in misleading ones, so the line has all causes. The
 * SDK quotes what it received, so the line has no control characters, no credentials or queries of URLs, and no `secrets`.
 */
export function reasonOf(error: unknown, secrets: readonly string[] = []): string {
  const texts = chainOf(error).filter((text) => text !== '');
  const told = [...new Set(texts.map(plain))].join(', because: ') || 'an error without a text';
  const text = secrets
    .filter((secret) => secret !== '')
    .reduce((rest, secret) => rest.replaceAll(secret, '***'), told)
    .replace(/(\bhttps?:\/\/)[^\s/?#'"@]*@/gi, '$1')
    .replace(/(\bhttps?:\/\/[^\s?#'"]*)[?#][^\s'"]*/gi, '$1')
    .trim();
  return clipped(text, LONGEST_REASON);
}

/** Makes a text one line, without the version that the SDK appends: it is not that of the package. */
function plain(text: string): string {
  return text
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/ ?Version: @zama-fhe\/relayer-sdk@\S+/g, '')
    .replace(/[. ]+$/, '');
}

function chainOf(error: unknown, links = DEEPEST): string[] {
  if (error === undefined || links === 0) return [];
  return [errorText(error), ...chainOf(causeOf(error), links - 1)];
}

function errorText(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : '';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return code === '' || error.message.includes(code) ? error.message : `${error.message} (${code})`.trim();
}

/** Returns the cause of an error. The SDK's causes are errors, or records with the error in the member `error`. */
function causeOf(error: unknown): unknown {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error || typeof cause !== 'object' || cause === null) return cause ?? undefined;
  return 'error' in cause ? cause.error : undefined;
}
