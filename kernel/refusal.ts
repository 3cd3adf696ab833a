/** Marks a refusal across module copies: a plugin may load another copy of the SDK than the service. */
const brand: unique symbol = Symbol.for('signed-data-proxy.refusal');

/** The members of a {@link Refusal} that its maker may give. */
export type RefusalOptions = Partial<Omit<Refusal, 'status' | 'stack' | 'cause' | 'message' | 'name' | typeof brand>>;

/**
 * An answer other than success. Inner stages may throw one; the client gets its status and its message or body. Any other
 * error becomes a bare `500 Internal server error`. A public hook that throws anything drops the request, with 403, unless its
 * stage fails open.
 */
export class Refusal extends Error {
  readonly [brand] = true;
  declare readonly status: number;
  /** The response's body; by default `{"error": message}`. */
  declare readonly body: Readonly<Record<string, unknown>>;
  /** Headers of the response. */
  declare readonly headers: Readonly<Record<string, string>>;
  /** What really happened. It is for the log, and never reaches a client. */
  declare readonly reason: string | undefined;
  /** The upstream's HTTP status, if it answered; for plugins that decide whether to call it again. */
  declare readonly upstreamStatus: number | undefined;
  /** Milliseconds for which the upstream asked not to be called (`Retry-After`). */
  declare readonly retryAfter: number | undefined;
  /** One of a few words for the cause, such as `timeout`, by which failures are counted and searched. Clients never see it. */
  declare readonly failureClass: string | undefined;
  /** Whether a plugin or the service is to blame, so that the log warns operators. By default true for statuses from 500 on. */
  declare readonly fault: boolean;
  /** The stage that refused; the kernel fills it in. */
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

/** Returns whether a value is a refusal, also one made by another copy of the SDK. */
export function isRefusal(value: unknown): value is Refusal {
  try {
    return typeof value === 'object' && value !== null && brand in value;
  } catch {
    return false;
  }
}

/** The kernel's own refusals. All others belong to plugins. */
export const refusals = {
  endpointNotFound: () => new Refusal(404, 'Endpoint not found'),
  unauthenticated: () => new Refusal(401, 'Unauthorized'),
  upstreamStatus: (status: number) => new Refusal(502, 'API call failed', { reason: `status ${status}` }),
  dropped: (plugin: string, reason: string) =>
    new Refusal(403, `Request dropped by plugin "${plugin}"`, { reason, fault: true }),
  exhausted: (plugin: string, reason: string) =>
    new Refusal(403, `Plugin "${plugin}" budget exhausted`, { reason, fault: true }),
  /** The client has left and reads no answer. Access logs commonly show 499 for it. */
  abandoned: () => new Refusal(499, 'Client closed request'),
  /** The mode responded by itself, without a signed answer. */
  unanswered: () => new Refusal(500, 'Internal server error', { reason: 'the mode has not run', fault: false }),
  internal: (reason: string) => new Refusal(500, 'Internal server error', { reason }),
};

/** Refusals that were read and checked. They are frozen, so that a plugin cannot change one that it catches. */
const sound = new WeakSet<object>();

function settled(refusal: Refusal): Refusal {
  sound.add(Object.freeze(refusal));
  return refusal;
}

/** Reads a refusal into a checked copy. @throws Error if it could not be sent. */
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
 * Returns what was thrown as a refusal: read once, checked and frozen. It never throws, although the value may carry the brand
 * without being a refusal, throw when it is read, or change later.
 * @param stage the stage that refused, unless the refusal names an inner one already.
 * @param fallback makes a refusal of any other value; by default a bare 500, whose reason keeps the original text for the log.
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

/** Throws a refusal in a stage's name. @throws Refusal */
export function refuse(stage: string, refusal: Refusal): never {
  throw asRefusal(refusal, stage);
}

/**
 * Returns the text of anything that was thrown, for the log: the name of an error without a text. It never throws, even if
 * reading the value does.
 */
export function errorForLog(error: unknown, shown: 'stack' | 'message' = 'stack'): string {
  try {
    if (isRefusal(error)) return String(error.reason ?? error.message);
    return error instanceof Error ? String(error[shown] || error.message || error.name) : String(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

/**
 * Returns a frozen copy of an object, as plain JSON at every depth. The copy cannot change after the check, whatever
 * accessors and `toJSON` the object has.
 * @throws Error if JSON cannot carry the value or makes no object of it, and any error that reading the value throws.
 */
export function plainObject(value: unknown): Readonly<Record<string, unknown>> {
  const copy: unknown = JSON.parse(JSON.stringify(value), (_, member) => Object.freeze(member));
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) throw new TypeError('is no JSON object');
  return copy as Readonly<Record<string, unknown>>;
}
