import { checkPlainHttp, error, type Finding } from '../../plugins-sdk/config.ts';

/**
 * Checks a URL that the service asks, without credentials in it.
 * @param danger what others could do on the way, for the warning of plain HTTP.
 * @param instead where credentials belong, and where a query does; without the latter the URL may have one.
 */
export function checkUrl(
  at: string,
  text: string,
  danger: string,
  instead: { readonly credentials?: string; readonly query?: string } = {},
): Finding[] {
  if (!URL.canParse(text)) return [error(at, 'is no valid URL')];
  const { username, password } = new URL(text);
  const { credentials = '', query } = instead;
  if (username !== '' || password !== '') return [error(at, `must hold no user name or password${credentials}`)];
  if (query !== undefined && /[?#]/.test(text)) return [error(at, `must hold no query or fragment${query}`)];
  return checkPlainHttp(at, text, danger);
}
