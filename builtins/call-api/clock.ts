import type { BoundedResponse } from '../../lib/http/client/index.ts';
import type { Log } from '../../plugins-sdk/index.ts';
import type { Meters } from '../../plugins-sdk/meters.ts';

/** Milliseconds between two looks at the same host. */
const SPACING_MS = 3000;
/** Milliseconds that an answer may take: what its header says is no better than half of that. */
const LONGEST_CALL_MS = 1000;
/** Milliseconds by which two looks at a clock that runs may differ: each header is cut to seconds. Less than the spacing. */
const TOLERANCE_MS = 2000;
/** Milliseconds after which a look says nothing any more. */
const LIFETIME_MS = 600_000;
/** Hosts that count: a plugin may ask others than those of the config. */
const MOST_HOSTS = 100;
/** Milliseconds from which a warning says that the clock is off, and below which it is over. */
const OFF_MS = 5000;
const AGREES_MS = 4000;

/** The last look at a host. */
interface Look {
  /** By the steady clock. */
  readonly at: number;
  /** The host's clock less the steady one: the same at each look where the header comes from a clock. */
  readonly pace: number;
  /** This clock less that of the host; nothing until a second look has found that the host's runs. */
  readonly offset: number | undefined;
  readonly isFirst: boolean;
}

/**
 * How far this clock is from those of the upstreams, by the `Date` of their answers. A header out of somebody's cache stands still, so
 * a host counts once its header moves on as time does. Answers that say their `Age`, or took long, tell nothing. One host that is
 * wrong does not prevail over others: the median counts.
 */
export class UpstreamClocks {
  readonly #now: () => number;
  readonly #log: Log;
  readonly #looks = new Map<string, Look>();
  #isOff = false;

  constructor(now: () => number, log: Log) {
    this.#now = now;
    this.#log = log;
  }

  /** @param duration milliseconds of the call whose answer has just come. */
  look(host: string, { date, age }: BoundedResponse['headers'], duration: number): void {
    const at = performance.now();
    const before = this.#looks.get(host);
    if (before === undefined ? this.#looks.size >= MOST_HOSTS : at - before.at < SPACING_MS) return;
    const told = Date.parse(String(date));
    const isOld = age !== undefined && age !== '0';
    if (isOld || duration > LONGEST_CALL_MS || Number.isNaN(told)) return;
    // The header was written, on average, half way and half a second after what it says.
    const upstream = told + 500 + duration / 2;
    const pace = upstream - at;
    const runs = before !== undefined && Math.abs(pace - before.pace) < TOLERANCE_MS;
    const offset = runs ? this.#now() - upstream : undefined;
    this.#looks.set(host, { at, pace, offset, isFirst: before === undefined });
    this.#judge();
  }

  /** Milliseconds that this clock is ahead; nothing while too few hosts tell. */
  get offset(): number | undefined {
    return medianOf(this.#offsets());
  }

  /** In ascending order; none where more hosts are yet to be known than are known: the first could be the one that is wrong. */
  #offsets(): readonly number[] {
    const since = performance.now() - LIFETIME_MS;
    const looks = [...this.#looks.values()].filter(({ at }) => at > since);
    const offsets = looks.flatMap(({ offset }) => offset ?? []);
    return offsets.length > looks.filter(({ isFirst }) => isFirst).length ? offsets.sort((a, b) => a - b) : [];
  }

  #judge(): void {
    const offsets = this.#offsets();
    const offset = medianOf(offsets);
    if (offset === undefined || (this.#isOff ? Math.abs(offset) >= AGREES_MS : Math.abs(offset) <= OFF_MS)) return;
    this.#isOff = !this.#isOff;
    const fields = { secondsAhead: Math.round(offset / 100) / 10, hosts: offsets.length };
    if (this.#isOff) this.#log.warn('this clock differs from those of the upstreams: timestamps may be wrong', fields);
    else this.#log.info('this clock agrees with those of the upstreams again', fields);
  }
}

/** The median; of two in the middle the one nearer to 0, since the other may come from the one host that is wrong. */
function medianOf(sorted: readonly number[]): number | undefined {
  const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (sorted.length === 0) return undefined;
  return Math.abs(low) < Math.abs(high) ? low : high;
}

export function clockMeters(meters: Meters, clocks: UpstreamClocks): void {
  meters.gauge(
    {
      name: 'clock_offset_seconds',
      help: 'Seconds that the clock is ahead of those of the upstreams, by the median; NaN while too few tell',
      across: 'average',
    },
    () => (clocks.offset ?? Number.NaN) / 1000,
  );
}
