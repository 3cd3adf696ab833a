import { realpath } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { createHttpClient } from '../../plugins-sdk/lib/http/client/index.ts';
import { isDeeperThan } from '../../plugins-sdk/lib/json/skip.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { decode, readBounded } from '../files.ts';
import { parseConfig, type Tree } from '../yaml.ts';
import type { ReadNeighbour } from './document.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const FETCH_TIMEOUT_MS = 30_000;
/** Documents that one document refers to. */
const MAX_NEIGHBOURS = 50;
const LIMITS = { depth: 200, values: 1_000_000, isExact: false };

/** Reads an OpenAPI document, JSON or YAML. @param source a URL, or the absolute path of a file. */
export async function readDocument(source: string): Promise<Tree> {
  const bytes = isUrl(source) ? await fetched(source) : await readBounded(source, MAX_BYTES);
  const text = decode(bytes, source);
  if (/^\s*</.test(text))
    throw new Error(`${source} is a web page, or XML: give the JSON or YAML document that such a page shows`);
  return json(text) ?? parseConfig(text, source, LIMITS);
}

/**
 * Reads what a document refers to: files in its folder and below, or what its server has. A document that could name others would
 * read whatever its reader can.
 */
export function neighboursOf(source: string): ReadNeighbour {
  let left = MAX_NEIGHBOURS;
  return async (path) => {
    if (left-- === 0) throw new Error(`more than ${MAX_NEIGHBOURS} documents`);
    if (isUrl(source)) {
      const url = new URL(path, source);
      if (url.origin !== new URL(source).origin) throw new Error('another server');
      return readDocument(url.href);
    }
    const folder = await realpath(dirname(source));
    const file = await realpath(resolve(folder, decodeURIComponent(path)));
    if (!file.startsWith(folder + sep)) throw new Error('another folder');
    return readDocument(file);
  };
}

export function isUrl(source: string): boolean {
  return /^https?:\/\//i.test(source);
}

async function fetched(url: string): Promise<Buffer> {
  const client = createHttpClient();
  try {
    const headers = { accept: 'application/json, application/yaml;q=0.9, */*;q=0.5' };
    const bounds = { timeout: FETCH_TIMEOUT_MS, maxBytes: MAX_BYTES };
    const { status, headers: answered, body } = await client.request({ method: 'GET', url, headers, ...bounds });
    if (status === 200) return body;
    const { location } = answered;
    const where = typeof location === 'string' ? `, which points to ${location}: redirects are not followed` : '';
    throw new Error(`the document cannot be fetched: status ${status}${where}`);
  } finally {
    await client.close();
  }
}

/** Quicker for JSON, by far; nothing for what is none, is no object, is nested deeply, or has a key that no config may have. */
function json(text: string): Tree | undefined {
  if (!/^\s*\{/.test(text) || isDeeperThan(text, LIMITS.depth) || text.includes('"__proto__"')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
