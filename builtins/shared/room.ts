import type { BucketLimit, StateArea } from '../../plugins-sdk/state.ts';

/**
 * Takes room for bytes that are kept for a window. A bucket refills once within its window, so that at most twice its bytes are
 * kept at a time.
 * @param limits the buckets that must all have room, by their keys; each holds as many bytes as can be added at once.
 * @returns `false` if one of them lacks room; nothing is taken then, unless another caller was faster. @throws StateUnavailable
 */
export async function takeRoom(
  area: StateArea,
  limits: Readonly<Record<string, BucketLimit>>,
  bytes: number,
): Promise<boolean> {
  const take = (n: number) => Promise.all(Object.entries(limits).map(([key, limit]) => area.takeTokens(key, limit, n)));
  // Looks before it takes, so that what finds no room uses up no share.
  const hasRoom = (await take(0)).every(({ left }) => left >= bytes);
  return hasRoom && (await take(bytes)).every(({ granted }) => granted === bytes);
}
