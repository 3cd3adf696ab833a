import type { ClientBuckets, TokenTake } from '../../lib/bounded/token-buckets.ts';
import { millisecondsSchema, type Services, type Static, Type } from '../../plugins-sdk/index.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';
import type { Closable } from '../../plugins-sdk/state/state.ts';
import { clientBuckets } from '../shared/client-buckets.ts';
import { bucketState, type LimitState } from '../shared/limit-headers.ts';

const count = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }));

export const Limit = closedObject(
  {
    window: Type.Optional(millisecondsSchema('Milliseconds in which max requests are allowed')),
    max: count('Requests per window'),
    perDay: count('Requests per calendar day, in UTC'),
    perMonth: count('Requests per calendar month, in UTC'),
  },
  'For all keys of that name together; default none',
);
export type KeyLimit = Static<typeof Limit>;

/** What the schema cannot say. */
export function limitFault({ window, max, perDay, perMonth }: KeyLimit): string | undefined {
  if ((window === undefined) !== (max === undefined)) return 'window and max belong together: set both';
  if (max === undefined && perDay === undefined && perMonth === undefined)
    return 'limits nothing: set window and max, perDay or perMonth';
  return undefined;
}

type Period = 'day' | 'month';

/** When the day or month of a moment begins, and when the next one does. */
function boundsOf(period: Period, now: number): readonly [begin: number, end: number] {
  const date = new Date(now);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (period === 'day') return [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)];
  return [Date.UTC(year, month), Date.UTC(year, month + 1)];
}

type Surroundings = Pick<Services, 'stateEngine' | 'workers' | 'now'>;

/** One limit of a key, by the client's name. */
interface LimitPart extends Partial<Closable> {
  take(client: string): TokenTake | Promise<TokenTake>;
  state(client: string): LimitState;
  readonly reason: string;
}

/** Counts requests of a day or month. A new one begins with new counts; a clock that goes back begins none. */
class CalendarQuota implements LimitPart {
  readonly reason: string;
  readonly #max: number;
  readonly #period: Period;
  readonly #services: Surroundings;
  #buckets: ClientBuckets & Partial<Closable>;
  #begin = 0;
  #end = 0;

  constructor(max: number, period: Period, services: Surroundings) {
    this.reason = `this client has used up the ${period} of the rateLimit of its key`;
    this.#max = max;
    this.#period = period;
    this.#services = services;
    this.#buckets = this.#next(services.now());
  }

  take(client: string): TokenTake | Promise<TokenTake> {
    const now = this.#services.now();
    if (now >= this.#end) this.#buckets = this.#next(now);
    const whenOver = (taken: TokenTake) => (taken.allowed ? taken : { allowed: false, retryAfter: this.#end - now });
    const taken = this.#buckets.take(client);
    return taken instanceof Promise ? taken.then(whenOver) : whenOver(taken);
  }

  state(client: string): LimitState {
    const [max, window] = [this.#max, this.#end - this.#begin];
    const left = max - this.#buckets.used(client);
    return { name: this.#period, max, window, left, resetIn: this.#end - this.#services.now() };
  }

  async close(): Promise<void> {
    await this.#buckets.close?.();
  }

  #next(now: number): ClientBuckets {
    const { stateEngine, workers } = this.#services;
    [this.#begin, this.#end] = boundsOf(this.#period, now);
    const limit = { max: this.#max, window: this.#end - this.#begin, until: this.#end };
    return clientBuckets(limit, stateEngine, `api-keys by ${this.#period}`, workers);
  }
}

function windowPart(limit: { readonly max: number; readonly window: number }, services: Surroundings): LimitPart {
  const buckets: ClientBuckets & Partial<Closable> = clientBuckets(
    limit,
    services.stateEngine,
    'api-keys',
    services.workers,
  );
  return {
    take: (client) => buckets.take(client),
    state: (client) => bucketState('key', limit, buckets.used(client)),
    reason: 'this client has sent more than the rateLimit of its key lets in',
    close: async () => buckets.close?.(),
  };
}

export interface KeyTake extends TokenTake {
  /** Which limit refuses. */
  readonly reason?: string;
}

const ALLOWED: KeyTake = { allowed: true, retryAfter: 0 };

/** Asks one limit after the other. A request that a later limit refuses has cost a token of the earlier, shorter ones. */
function takeAll([part, ...others]: readonly LimitPart[], client: string): KeyTake | Promise<KeyTake> {
  if (part === undefined) return ALLOWED;
  const goOn = (taken: TokenTake) => (taken.allowed ? takeAll(others, client) : { ...taken, reason: part.reason });
  const taken = part.take(client);
  return taken instanceof Promise ? taken.then(goOn) : goOn(taken);
}

/** The limits of clients with a name; a client's keys share them. */
export class KeyLimits {
  readonly #parts = new Map<string, LimitPart>();

  /** @returns what takes a request of the client from all limits, and what says how much they hold then. */
  of({ window, max, perDay, perMonth }: KeyLimit, client: string, services: Surroundings) {
    const parts = [
      ...(max === undefined || window === undefined
        ? []
        : [this.#part(`${max}/${window}`, () => windowPart({ max, window }, services))]),
      ...(perDay === undefined ? [] : [this.#part(`${perDay}/day`, () => new CalendarQuota(perDay, 'day', services))]),
      ...(perMonth === undefined
        ? []
        : [this.#part(`${perMonth}/month`, () => new CalendarQuota(perMonth, 'month', services))]),
    ];
    return { take: () => takeAll(parts, client), states: () => parts.map((part) => part.state(client)) };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#parts.values()].map(async (part) => part.close?.()));
  }

  #part(text: string, make: () => LimitPart): LimitPart {
    const part = this.#parts.get(text) ?? make();
    this.#parts.set(text, part);
    return part;
  }
}
