import type { Lifetime } from '../../test/support/lifetime.ts';

/** Runs `work`, and ends what it has started, the last first. */
export async function withLifetime<T>(work: (lifetime: Lifetime) => Promise<T>): Promise<T> {
  const ends: (() => Promise<void>)[] = [];
  try {
    return await work({ after: (end) => void ends.push(end) });
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}
