import { setTimeout } from 'node:timers/promises';
import { type Endpoint, type Exchange, type Question, SignedResponse } from '../../plugins-sdk/index.ts';
import { randomId, requireAnswer, type StateArea, type Wanted } from '../../plugins-sdk/state.ts';
import type { Found } from '../shared/cache-entries.ts';
import { takeRoom } from '../shared/room.ts';
import { callTimeoutOf } from '../shared/upstream.ts';

/** Milliseconds between two checks whether another process has stored the answer. */
const POLL_INTERVAL_MS = 50;
/** Most bytes of answers with one `maxAge` that can be added to the engine at once: other state needs room there, too. */
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * What a search found: an answer of another process, or none and the lock of its key, the right of one process among all to ask
 * the upstream. Neither if the engine is unreachable or the wait was too long.
 */
export interface Search {
  readonly found?: Omit<Found<SignedResponse>, 'isGood'>;
  /** Stores the answer that was made, if there is one, then releases the lock. */
  readonly unlock?: (made?: SignedResponse) => void;
}

/** The endpoint, and the signal that all waiting clients have left. */
type Asking = Pick<Exchange, 'endpoint' | 'clientSignal'>;

/** The longest wait for another process, in timeouts of the API: one for its wait for a slot, one for its call. */
const WAIT_IN_TIMEOUTS = 2;

/** Returns the longest wait for an answer that another process makes, in milliseconds. */
export const longestWaitOf = (endpoint: Endpoint): number => WAIT_IN_TIMEOUTS * callTimeoutOf(endpoint);

/** The engine's area for answers, their signer, and the clock in epoch milliseconds. */
interface Kept {
  readonly area: StateArea;
  readonly node: string;
  now(): number;
}

/**
 * Makes the function that finds an answer of any process that shares the engine, or locks its key, or waits for the process that has
 * the lock: when several miss the same answer, one of them asks the upstream. It takes the key of the answer, which depends on the
 * signer and the config, and the milliseconds for which answers are kept.
 */
export function searching(kept: Kept) {
  return async (
    key: string,
    maxAge: number,
    question: Question,
    { endpoint, clientSignal }: Asking,
  ): Promise<Search> => {
    const longestWait = longestWaitOf(endpoint);
    const wanted = { endpointId: endpoint.id, question };
    const began = performance.now();
    let unlock: Search['unlock'];
    try {
      for (;;) {
        const found = foundIn(await kept.area.get(key), maxAge, wanted, kept);
        if (found !== undefined) {
          unlock?.();
          return { found };
        }
        if (unlock !== undefined) return { unlock };
        unlock = await lock(key, maxAge, longestWait, kept);
        // Under the lock it looks again: another process may have stored the answer and released the lock since the last look.
        if (unlock !== undefined) continue;
        if (performance.now() - began >= longestWait || clientSignal.aborted) return {};
        await setTimeout(POLL_INTERVAL_MS);
      }
    } catch {
      unlock?.();
      return {};
    }
  };
}

/** Locks a key, unless another process has. @param ttl milliseconds after which the lock of a process that died is free. */
async function lock(key: string, maxAge: number, ttl: number, kept: Kept): Promise<Search['unlock']> {
  const token = randomId();
  const name = `lock ${key}`;
  if ((await kept.area.compareAndSet(name, undefined, token, { ttl })) !== undefined) return undefined;
  const end = async (made?: SignedResponse) => {
    if (made !== undefined) await store(key, made, maxAge, kept).catch(() => undefined);
    await kept.area.compareAndSet(name, token, undefined);
  };
  return (made) => void end(made).catch(() => undefined);
}

async function store(key: string, { json }: SignedResponse, maxAge: number, { area, now }: Kept): Promise<void> {
  const limits = { [`bytes for ${maxAge} ms`]: { max: MOST_BYTES, window: maxAge } };
  const text = `${now()} ${json}`;
  if (!(await takeRoom(area, limits, Buffer.byteLength(key + text)))) return;
  await area.compareAndSet(key, undefined, text, { ttl: maxAge });
}

/**
 * Reads a stored answer. Its age is estimated by its maker's clock, which may differ from this one; the engine's clock decides
 * when it expires. An answer of another endpoint or signer, by its receipt to another question, or from this clock's future is
 * ignored.
 */
function foundIn(text: string | undefined, maxAge: number, wanted: Wanted, { node, now }: Kept): Search['found'] {
  if (text === undefined) return undefined;
  const [madeAt = ''] = text.split(' ', 1);
  const left = maxAge - (now() - Number(madeAt));
  try {
    const value = SignedResponse.parse(text.slice(madeAt.length + 1));
    requireAnswer(value, wanted, { signers: [node], now });
    return { value, ttl: Math.min(Math.max(Number.isFinite(left) ? left : 1, 1), maxAge) };
  } catch {
    return undefined;
  }
}
