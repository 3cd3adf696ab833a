import { decode, readBounded } from '../../config/files.ts';
import { parseConfig, type Tree } from '../../config/yaml.ts';
import { isDeeperThan } from '../../lib/json/json-text.ts';
import { withoutRoundedNumbers } from '../../lib/json/numbers.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { httpGet } from '../http-get.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const FETCH_TIMEOUT_MS = 30_000;
const LIMITS = { depth: 200, values: 1_000_000, isExact: false };

/** Reads an OpenAPI document, JSON or YAML. @param source a URL, or the absolute path of a file. */
export async function readDocument(source: string): Promise<Tree> {
  const name = nameOfSource(source);
  const text = decode(await (isUrl(source) ? fetched(source) : readBounded(source, MAX_BYTES)), name);
  if (/^\s*</.test(text))
    throw new Error('is a web page, or XML: give the JSON or YAML document that such a page shows');
  return json(text) ?? parseConfig(text, name, LIMITS);
}

/** Returns whether a text is meant as a URL; the HTTP client refuses all but http and https. */
export function isUrl(source: string): boolean {
  return /^[a-z][\w+.-]*:\/\//i.test(source);
}

/** Returns a document's name for texts: a URL without user name, password and query, which may be secret. */
export function nameOfSource(source: string): string {
  if (!isUrl(source)) return source;
  if (!URL.canParse(source)) return 'the document';
  const { protocol, host, pathname } = new URL(source);
  return `${protocol}//${host}${pathname}`;
}

async function fetched(url: string): Promise<Buffer> {
  const headers = { accept: 'application/json, application/yaml;q=0.9, */*;q=0.5' };
  const { status, body } = await httpGet(url, MAX_BYTES, { timeout: FETCH_TIMEOUT_MS, headers });
  if (status === 200) return body;
  const cure = status > 299 && status < 400 ? ', and redirects are not followed' : '';
  throw new Error(`the document cannot be fetched: status ${status}${cure}`);
}

/**
 * Parses JSON, much faster than YAML. Numbers that a double would round become texts. Undefined for other text, deep nesting, and
 * keys that no config may have.
 */
function json(text: string): Tree | undefined {
  if (!/^\s*\{/.test(text) || isDeeperThan(text, LIMITS.depth) || text.includes('"__proto__"')) return undefined;
  const value = jsonIn(withoutRoundedNumbers(text, (digits) => JSON.stringify(digits)));
  return isRecord(value) ? value : undefined;
}
