/** Windows of the calendar of UTC, in milliseconds. */
export const WINDOWS = { perSecond: 1000, perMinute: 60_000, perHour: 3_600_000, perDay: 86_400_000 } as const;
type WindowName = keyof typeof WINDOWS;

const NAMES = Object.keys(WINDOWS) as readonly WindowName[];

/** Most calls in each window; without a number any. */
export type Limits = { readonly [N in WindowName]?: number };

/** What is known of the calls of an API. */
export interface Ledger {
  /** Epoch milliseconds until which the upstream wants no calls. */
  readonly until: number;
  /** Of each window: which one it is since 1970, and its calls. */
  readonly windows: readonly (readonly [index: number, calls: number])[];
}

export const EMPTY: Ledger = { until: 0, windows: NAMES.map(() => [0, 0]) };

/** Whatever is none counts as empty. */
export function readLedger(text = ''): Ledger {
  const [until = 0, ...numbers] = text.split(' ').map(Number);
  if (numbers.length !== 2 * NAMES.length || ![until, ...numbers].every(Number.isSafeInteger)) return EMPTY;
  return { until, windows: NAMES.map((_, i) => [numbers[2 * i] ?? 0, numbers[2 * i + 1] ?? 0]) };
}

export function ledgerText({ until, windows }: Ledger): string {
  return [until, ...windows.flat()].join(' ');
}

/** Milliseconds for which an upstream's `Retry-After` is heeded at most. */
export const LONGEST_PAUSE_MS = 300_000;
/** Milliseconds by which the clocks of processes may differ. */
const CLOCK_SKEW_MS = 300_000;

/** Nothing of a clock that was far ahead, and has been set back since: it would be heeded for years. */
export function heeded(until: number, now: number): number {
  return until > now + LONGEST_PAUSE_MS + CLOCK_SKEW_MS ? 0 : until;
}

/** With the windows of this time, empty where they are new. A process whose clock is a little ahead begins them for all. */
export function rolled({ until, windows }: Ledger, now: number): Ledger {
  const present = windows.map(([index, calls], i): readonly [number, number] => {
    const length = WINDOWS[NAMES[i] ?? 'perDay'];
    const own = Math.floor(now / length);
    return own > index || index * length > now + CLOCK_SKEW_MS ? [own, 0] : [index, calls];
  });
  return { until: heeded(until, now), windows: present };
}

export function withCalls({ until, windows }: Ledger, n: number): Ledger {
  return { until, windows: windows.map(([index, calls]) => [index, calls + n]) };
}

/** A window with a limit: how much of it is used, and when it ends. */
export interface Use {
  readonly name: WindowName;
  readonly calls: number;
  readonly limit: number;
  /** Epoch milliseconds. */
  readonly endsAt: number;
}

export function usesOf({ windows }: Ledger, limits: Limits): readonly Use[] {
  return NAMES.flatMap((name, i) => {
    const [index = 0, calls = 0] = windows[i] ?? [];
    const limit = limits[name];
    return limit === undefined ? [] : [{ name, calls, limit, endsAt: (index + 1) * WINDOWS[name] }];
  });
}
