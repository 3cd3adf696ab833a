import { clipped } from '../../lib/text/clipped.ts';

/** Characters of a reason in the log. */
const LONGEST_REASON = 500;

/** Errors of a chain of causes that the line names at most. */
const DEEPEST = 5;

/**
 * What went wrong, in one bounded line for the log. The SDK wraps errors in others that say something else, so all causes are
 * in the line. It quotes what it received, so control characters, credentials and queries of URLs, and `secrets` are not.
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

/** One line, without the version that the SDK puts behind its texts: it is another than that of the package. */
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

/** The SDK's causes are errors, or records that have the error in a member. */
function causeOf(error: unknown): unknown {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error || typeof cause !== 'object' || cause === null) return cause ?? undefined;
  return 'error' in cause ? cause.error : undefined;
}
