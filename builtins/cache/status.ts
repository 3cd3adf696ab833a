type Headers = Readonly<Record<string, string>>;

/** The cache's name in `Cache-Status` (RFC 9211). */
export const NAME = 'signed-data-proxy';

function statusOf(parameters: string): Headers {
  return Object.freeze({ 'Cache-Status': `${NAME}; ${parameters}` });
}

/** Made for this request. */
export const missed = statusOf('fwd=miss');

/** Made for another request at the same time. */
export const collapsed = statusOf('fwd=miss; collapsed');

/** Header objects that are kept: a frozen one is checked only once, and checking costs more than all else about it. */
const MOST_HITS = 1000;
const hits = new Map<number, Headers>();

/** Made before. @param milliseconds for which it will be given out. */
export function hit(milliseconds: number): Headers {
  const seconds = Math.floor(milliseconds / 1000);
  const known = hits.get(seconds);
  if (known !== undefined) return known;
  if (hits.size >= MOST_HITS) hits.clear();
  const headers = statusOf(`hit; ttl=${seconds}`);
  hits.set(seconds, headers);
  return headers;
}

/** Made before, and given out since there is no new one yet. @param milliseconds that are over since it ended. */
export function stale(milliseconds: number, detail: 'stale-if-error' | 'stale-while-revalidate'): Headers {
  return statusOf(`hit; ttl=-${Math.max(0, Math.ceil(milliseconds / 1000))}; detail=${detail}`);
}
