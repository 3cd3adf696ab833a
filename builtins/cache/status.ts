import { LRUCache } from 'lru-cache';

type Headers = Readonly<Record<string, string>>;

/** The cache's name in `Cache-Status` (RFC 9211). */
export const NAME = 'signed-data-proxy';

function statusOf(parameters: string): Headers {
  return Object.freeze({ 'Cache-Status': `${NAME}; ${parameters}` });
}

/** The headers of an answer that was made for this request. */
export const missed = statusOf('fwd=miss');

/** The headers of an answer that was made for another request at the same time. */
export const collapsed = statusOf('fwd=miss; collapsed');

/** Headers of hits, by seconds. A frozen object is checked only once, and the check costs more than all else here. */
const hits = new LRUCache<number, Headers>({ max: 1000 });

/** Returns the headers of a cached answer. @param milliseconds until it expires. */
export function hit(milliseconds: number): Headers {
  const seconds = Math.floor(milliseconds / 1000);
  const known = hits.get(seconds) ?? statusOf(`hit; ttl=${seconds}`);
  if (!hits.has(seconds)) hits.set(seconds, known);
  return known;
}

/** Returns the headers of an expired answer, for lack of a new one. @param milliseconds since it expired. */
export function stale(milliseconds: number, detail: 'stale-if-error' | 'stale-while-revalidate'): Headers {
  return statusOf(`hit; ttl=${-Math.max(0, Math.ceil(milliseconds / 1000)) || 0}; detail=${detail}`);
}
