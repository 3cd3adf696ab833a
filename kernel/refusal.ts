/** Symbol that marks a refusal across module copies: a plugin may load another copy of the SDK than the service did. */
const brand: unique symbol = Symbol.for('signed-data-proxy.refusal');

export interface RefusalOptions {
  /** Replaces the standard body `{"error": message}`. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Headers of the response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What really happened, for the log only; it never reaches a client. */
  readonly reason?: string | undefined;
  /** The HTTP status of the upstream, where it answered; for those who call it again. */
  readonly upstreamStatus?: number | undefined;
  /** Milliseconds for which the upstream wants to be left alone, where it says so. */
  readonly retryAfter?: number | undefined;
  /** One of a few words for why it failed, by which failures are counted and searched; never shown to a client. */
  readonly failureClass?: string | undefined;
  /** `true` where a plugin or the service itself is to blame, whatever the status: operators hear of it. */
  readonly fault?: boolean;
  /** The stage that refused; the kernel fills it in. */
  readonly stage?: string | undefined;
}

/**
 * An answer other than success. Any inner stage may throw one; the client sees its status and message, or its body.
 * Whatever else it throws becomes a bare `500 Internal server error`; in a public hook that drops the request, a 403.
 */
export class Refusal extends Error {
  readonly [brand] = true;
  declare readonly status: number;
  declare readonly body: Readonly<Record<string, unknown>>;
  declare readonly headers: Readonly<Record<string, string>>;
  declare readonly reason: string | undefined;
  declare readonly upstreamStatus: number | undefined;
  declare readonly retryAfter: number | undefined;
  declare readonly failureClass: string | undefined;
  declare readonly fault: boolean;
  declare readonly stage: string | undefined;

  /**
   * @param status HTTP status, 400 to 599.
   * @param message the text that the client sees as `error`.
   * @throws RangeError for any other status: a refusal never looks like success.
   */
  constructor(status: number, message: string, options: RefusalOptions = {}) {
    super(message);
    if (!Number.isInteger(status) || status < 400 || status > 599)
      throw new RangeError(`a refusal with status ${status}`);
    this.name = 'Refusal';
    const { reason, upstreamStatus, retryAfter, failureClass, stage } = options;
    const { body = { error: message }, headers = {}, fault = status >= 500 } = options;
    Object.assign(this, { status, body, headers, reason, upstreamStatus, retryAfter, failureClass, fault, stage });
  }
}

/** True for a refusal, also of another copy of the SDK. */
export function isRefusal(value: unknown): value is Refusal {
  try {
    return typeof value === 'object' && value !== null && brand in value;
  } catch {
    return false;
  }
}

/** The kernel's own refusals: everything else belongs to a plugin. */
export const refusals = {
  endpointNotFound: () => new Refusal(404, 'Endpoint not found'),
  unauthenticated: () => new Refusal(401, 'Unauthorized'),
  upstreamStatus: (status: number) => new Refusal(502, 'API call failed', { reason: `status ${status}` }),
  dropped: (plugin: string, reason: string) =>
    new Refusal(403, `Request dropped by plugin "${plugin}"`, { reason, fault: true }),
  exhausted: (plugin: string, reason: string) =>
    new Refusal(403, `Plugin "${plugin}" budget exhausted`, { reason, fault: true }),
  /** The client is gone and reads no answer; 499 is what access logs commonly show for it. */
  abandoned: () => new Refusal(499, 'Client closed request'),
  /** The mode answered in its own words, without asking for an answer to sign. */
  unanswered: () => new Refusal(500, 'Internal server error', { reason: 'the mode has not run', fault: false }),
  internal: (reason: string) => new Refusal(500, 'Internal server error', { reason }),
};

/** Refusals that were read and checked, frozen so that no plugin changes one that it catches. */
const sound = new WeakSet<object>();

function settled(refusal: Refusal): Refusal {
  sound.add(Object.freeze(refusal));
  return refusal;
}

/** @throws where it could not be sent. */
function read(error: Refusal): Refusal {
  if (sound.has(error)) return error;
  const { status, message, body, headers, reason, upstreamStatus, retryAfter, failureClass, fault } = error;
  const text = String(message);
  return settled(
    new Refusal(status, text, {
      body: plainObject(body ?? { error: text }),
      headers: Object.freeze({ ...headers }),
      reason: reason === undefined ? undefined : String(reason),
      upstreamStatus: typeof upstreamStatus === 'number' ? upstreamStatus : undefined,
      retryAfter: typeof retryAfter === 'number' ? retryAfter : undefined,
      failureClass: typeof failureClass === 'string' ? failureClass : undefined,
      fault: fault === true,
    }),
  );
}

/**
 * The refusal that was thrown: read once, checked and frozen. It never throws: a value may carry the brand and be no refusal in
 * truth, throw when it is read, or change later.
 * @param stage that refused; an inner one that is named already stays.
 * @param fallback makes a refusal of anything else; by default a bare 500, whose reason keeps the original text for the log.
 */
export function asRefusal(error: unknown, stage?: string, fallback = refusals.internal): Refusal {
  const refusal = refusalOf(error, fallback);
  if (stage === undefined || refusal.stage !== undefined) return refusal;
  return settled(new Refusal(refusal.status, refusal.message, { ...refusal, stage }));
}

function refusalOf(error: unknown, fallback: (reason: string) => Refusal): Refusal {
  try {
    if (isRefusal(error)) return read(error);
  } catch (fault) {
    return settled(fallback(`${errorForLog(error)} (thrown as a refusal, and none: ${errorForLog(fault, 'message')})`));
  }
  return settled(fallback(errorForLog(error)));
}

/** @throws Refusal */
export function refuse(stage: string, refusal: Refusal): never {
  throw asRefusal(refusal, stage);
}

/** Text of anything that was thrown, for the log; what is thrown may be hostile to being read. */
export function errorForLog(error: unknown, shown: 'stack' | 'message' = 'stack'): string {
  try {
    if (isRefusal(error)) return String(error.reason ?? error.message);
    return error instanceof Error ? String(error[shown] ?? error.message) : String(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

/**
 * A frozen copy of an object that is plain JSON through and through. It stays as it was checked, whatever
 * accessors and `toJSON` the object has.
 * @throws where JSON cannot carry it, or makes something else than an object of it.
 */
export function plainObject(value: unknown): Readonly<Record<string, unknown>> {
  const copy: unknown = JSON.parse(JSON.stringify(value), (_, member) => Object.freeze(member));
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) throw new TypeError('is no JSON object');
  return copy as Readonly<Record<string, unknown>>;
}
