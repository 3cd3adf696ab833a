/** What a member of a message must be. */
type Guard<T = unknown> = (value: unknown) => value is T;
type Shape = Readonly<Record<string, Guard>>;
type Guarded<G> = G extends Guard<infer T> ? T : never;

/** All messages of a table, each with its name as `kind`. */
type MessageOf<S extends Readonly<Record<string, Shape>>> = {
  readonly [K in keyof S]: { readonly kind: K } & { readonly [M in keyof S[K]]: Guarded<S[K][M]> };
}[keyof S];

const text = (value: unknown): value is string => typeof value === 'string';
const whole = (value: unknown): value is number => Number.isSafeInteger(value);
/** Of a stop, within reason. */
const milliseconds = (value: unknown): value is number => whole(value) && value >= 0 && value <= 3_600_000;
const flag = (value: unknown): value is boolean => typeof value === 'boolean';
const lines = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(text);
const anything = (_value: unknown): _value is unknown => true;
const list = (value: unknown): value is readonly unknown[] => Array.isArray(value);

const fromWorker = {
  /** It has started by this config, and asks for the listener that all share. */
  started: { config: text },
  /** It listens. The first one to do so sends its listener along. */
  ready: { stopTime: milliseconds },
  /** It cannot start, and ends. */
  failed: { lines },
  /** It could put this config in force. */
  prepared: { id: whole, config: text },
  /** It could not. */
  refused: { id: whole, lines },
  committed: { stopTime: milliseconds },
  /** It was told to stop, but not by the primary. */
  leaving: { signal: text },
  gather: { id: whole, topic: text },
  answer: { id: whole, value: anything },
};

const fromPrimary = {
  /** Comes with the listener, unless it is to make one. */
  listen: {},
  /** All were ready once. */
  serve: { restarts: whole },
  prepare: { id: whole, announces: flag },
  commit: { id: whole },
  abort: { id: whole },
  /** @member others whether they go on. */
  stop: { signal: text, others: flag },
  ask: { id: whole, topic: text },
  gathered: { id: whole, values: list },
};

export type FromWorker = MessageOf<typeof fromWorker>;
export type FromPrimary = MessageOf<typeof fromPrimary>;

/** A message as it must be; nothing of one that is not. */
function reader<S extends Readonly<Record<string, Shape>>>(table: S): (message: unknown) => MessageOf<S> | undefined {
  const fits = (message: unknown): message is MessageOf<S> => {
    if (typeof message !== 'object' || message === null) return false;
    const kind: unknown = Reflect.get(message, 'kind');
    const shape = text(kind) && Object.hasOwn(table, kind) ? table[kind] : undefined;
    return shape !== undefined && Object.entries(shape).every(([name, guard]) => guard(Reflect.get(message, name)));
  };
  return (message) => (fits(message) ? message : undefined);
}

/** Plugins share a worker's process, and could send anything. */
export const readFromWorker = reader(fromWorker);
export const readFromPrimary = reader(fromPrimary);

/** What is said when a reload failed. */
export const NOT_RELOADED = 'the config was not reloaded: the one before stays in force';

/** Whether a handle that came with a message is one to listen with. */
export function isListener(handle: unknown): handle is { close(): void } {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}
