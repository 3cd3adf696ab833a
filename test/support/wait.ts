import { type EventEmitter, once } from 'node:events';

/** The timers and the clock of the system, also where a test moves its own. */
const { setTimeout, clearTimeout } = globalThis;
const now = performance.now.bind(performance);

/** No machine is so slow: what has not come by then does not come. */
const LIMIT_MS = 60_000;

/** What is waited for, with what is there instead; by default the source of what looks for it. */
type What = string | (() => string);

function inVain(what: What): Error {
  return new Error(`waited in vain for ${typeof what === 'string' ? what : what()}`);
}

/** Looks less often at what takes long: a look may be a request, whose work is that of many. */
const pause = (since: number) => new Promise((resolve) => setTimeout(resolve, Math.max(5, (now() - since) / 20)));

/** Resolves with the first value that is neither `undefined` nor `false`; for what follows a response without being part of it. */
export async function eventually<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  what: What = String(look),
): Promise<T> {
  for (const since = now(); ; await pause(since)) {
    const isLate = now() > since + LIMIT_MS;
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (isLate) throw inVain(what);
  }
}

/** Tries until it succeeds; fails as the last try. */
export async function retried<T>(work: () => T | Promise<T>): Promise<T> {
  for (const since = now(); ; await pause(since)) {
    const isLate = now() > since + LIMIT_MS;
    try {
      return await work();
    } catch (error) {
      if (isLate) throw error;
    }
  }
}

/** Resolves as what is to come does, and fails where it does not come. */
export async function inTime<T>(coming: PromiseLike<T>, what: What, limit = LIMIT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(inVain(what)), limit);
  });
  return Promise.race([coming, late]).finally(() => clearTimeout(timer));
}

/** The same for each who waits, from then on: it may come long after it was begun. */
export function awaited<T>(coming: Promise<T>, what: What, limit = LIMIT_MS): PromiseLike<T> {
  // biome-ignore lint/suspicious/noThenProperty: it is to be awaited
  return { then: (...given) => inTime(coming, what, limit).then(...given) };
}

/** What comes with the event. */
export function eventOf(emitter: EventEmitter, name: string) {
  return inTime(once(emitter, name), `the event "${name}"`);
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
