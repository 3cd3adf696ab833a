/** The windows of a quota, which follow the calendar in UTC, in milliseconds. */
export const WINDOWS = { perSecond: 1000, perMinute: 60_000, perHour: 3_600_000, perDay: 86_400_000 } as const;
type WindowName = keyof typeof WINDOWS;

const NAMES = Object.keys(WINDOWS) as readonly WindowName[];

/** Most calls in each window; absent: unlimited. */
export type Limits = { readonly [N in WindowName]?: number };

/** The counted calls of an API. */
export interface Ledger {
  /** End of the upstream's `Retry-After`, in epoch milliseconds. */
  readonly until: number;
  /** For each kind of window: the number of the current one since 1970, and its calls. */
  readonly windows: readonly (readonly [index: number, calls: number])[];
}

export const EMPTY: Ledger = { until: 0, windows: NAMES.map(() => [0, 0]) };

/** Parses a ledger; any other text counts as an empty one. */
export function readLedger(text = ''): Ledger {
  const [until = 0, ...numbers] = text.split(' ').map(Number);
  if (numbers.length !== 2 * NAMES.length || ![until, ...numbers].every(Number.isSafeInteger)) return EMPTY;
  return { until, windows: NAMES.map((_, i) => [numbers[2 * i] ?? 0, numbers[2 * i + 1] ?? 0]) };
}

export function ledgerText({ until, windows }: Ledger): string {
  return [until, ...windows.flat()].join(' ');
}

/** Most milliseconds for which an upstream's `Retry-After` is heeded. */
export const LONGEST_PAUSE_MS = 300_000;
/** Most milliseconds by which the clocks of processes may differ. */
const CLOCK_SKEW_MS = 300_000;

/**
 * Returns the ledger at a time, with new windows empty. A process whose clock is a little ahead begins a window for all. A pause
 * that ends too far off is dropped: a clock that was far ahead for a while could stop calls for years.
 */
export function rolled({ until, windows }: Ledger, now: number): Ledger {
  const present = windows.map(([index, calls], i): readonly [number, number] => {
    const length = WINDOWS[NAMES[i] ?? 'perDay'];
    const own = Math.floor(now / length);
    return own > index || index * length > now + CLOCK_SKEW_MS ? [own, 0] : [index, calls];
  });
  return { until: until > now + LONGEST_PAUSE_MS + CLOCK_SKEW_MS ? 0 : until, windows: present };
}

export function withCalls({ until, windows }: Ledger, n: number): Ledger {
  return { until, windows: windows.map(([index, calls]) => [index, calls + n]) };
}

/** The use of a window with a limit. */
export interface Use {
  readonly name: WindowName;
  readonly calls: number;
  readonly limit: number;
  /** End of the window, in epoch milliseconds. */
  readonly endsAt: number;
}

export function usesOf({ windows }: Ledger, limits: Limits): readonly Use[] {
  return NAMES.flatMap((name, i) => {
    const [index = 0, calls = 0] = windows[i] ?? [];
    const limit = limits[name];
    return limit === undefined ? [] : [{ name, calls, limit, endsAt: (index + 1) * WINDOWS[name] }];
  });
}
