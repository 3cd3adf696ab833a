import { realpath } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { decode, readBounded } from '../../config/files.ts';
import { writtenNumbers } from '../../config/tree.ts';
import { parseConfig, type Tree } from '../../config/yaml.ts';
import { createHttpClient } from '../../lib/http/client/index.ts';
import { isDeeperThan } from '../../lib/json/skip.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { type ReadNeighbour, TooMuch } from './document.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const FETCH_TIMEOUT_MS = 30_000;
/** Documents that one document refers to, and their bytes together. */
const MAX_NEIGHBOURS = 1000;
const MAX_NEIGHBOUR_BYTES = 4 * MAX_BYTES;
const LIMITS = { depth: 200, values: 1_000_000, isExact: false };

/** Reads an OpenAPI document, JSON or YAML. @param source a URL, or the absolute path of a file. */
export async function readDocument(source: string): Promise<Tree> {
  return treeOf(await bytesOf(source), source);
}

async function bytesOf(source: string): Promise<Buffer> {
  return isUrl(source) ? fetched(source) : readBounded(source, MAX_BYTES);
}

function treeOf(bytes: Buffer, source: string): Tree {
  const text = decode(bytes, source);
  if (/^\s*</.test(text))
    throw new Error(`${source} is a web page, or XML: give the JSON or YAML document that such a page shows`);
  return json(text) ?? withMerges(parseConfig(text, source, LIMITS));
}

/**
 * Reads what a document refers to: files in its folder and below, or what its server has. A document that could name others would
 * read whatever its reader can.
 */
export function neighboursOf(source: string): ReadNeighbour {
  let documents = 0;
  let size = 0;
  const read = async (path: string) => {
    if (documents >= MAX_NEIGHBOURS || size >= MAX_NEIGHBOUR_BYTES)
      throw new TooMuch(`refers to more than ${MAX_NEIGHBOURS} documents, or 64 MiB of them`);
    const place = await placeOf(path, source);
    const bytes = await bytesOf(place);
    documents += 1;
    size += bytes.length;
    return treeOf(bytes, place);
  };
  // One after the other, so that what is too much is never in memory.
  let last: Promise<unknown> = Promise.resolve();
  return (path) => {
    const next = last.then(() => read(path));
    last = next.catch(() => undefined);
    return next;
  };
}

/** @throws Error for a place that the document may not name. */
async function placeOf(path: string, source: string): Promise<string> {
  if (isUrl(source)) {
    const url = new URL(path, source);
    if (url.origin !== new URL(source).origin) throw new Error('another server');
    return url.href;
  }
  const folder = await realpath(dirname(source));
  const file = await realpath(resolve(folder, decodeURIComponent(path)));
  if (!file.startsWith(folder + sep)) throw new Error('another folder');
  return file;
}

/** Members of a document that are texts, and members of a schema that are, where its values are. */
const TEXTS = ['name', 'title', 'summary', 'description', 'operationId', 'pattern', 'url', 'version'];
const VALUES = ['enum', 'const', 'default', 'example', 'examples'];

/** A mapping with the texts that stand in the file where YAML makes numbers of what can only be a text, such as `1.10`. */
function asWritten(mapping: object): object {
  const types = [Reflect.get(mapping, 'type')].flat();
  const isOfTexts = types.includes('string') && !types.some((type) => type === 'number' || type === 'integer');
  const textKeys = [...TEXTS, ...(isOfTexts ? VALUES : [])];
  const read = (holder: object, key: string | number, value: unknown) => writtenNumbers(holder).get(key) ?? value;
  return Object.fromEntries(
    Object.entries(mapping).map(([key, value]) => {
      if (!textKeys.includes(key)) return [key, value];
      return [key, Array.isArray(value) ? value.map((each, i) => read(value, i, each)) : read(mapping, key, value)];
    }),
  );
}

/** Each mapping with the members of those that its key `<<` names: YAML 1.1 had it, and many documents are written so. */
function withMerges(tree: Tree): Tree {
  const done = new Map<unknown, unknown>();
  const merged = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (!done.has(value)) done.set(value, Array.isArray(value) ? value.map(merged) : mergedMapping(value));
    return done.get(value);
  };
  const mergedMapping = (value: object): object => {
    const { '<<': others, ...own } = Object.fromEntries(
      Object.entries(asWritten(value)).map(([key, each]) => [key, merged(each)]),
    );
    if (others === undefined) return own;
    const sources = [others].flat();
    if (!sources.every(isRecord)) throw new Error('the key "<<" must name a mapping, or a list of mappings');
    // The first one wins, and what stands beside the key wins over all.
    return Object.assign({}, ...sources.toReversed(), own);
  };
  const found = merged(tree);
  return isRecord(found) ? found : tree;
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
