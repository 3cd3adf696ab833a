/** What hooks get, as where plugin and service share a process: frozen or a copy, and a signal that is made when it is asked for. */

type Members = Readonly<Record<string, unknown>>;
type SignalOf = () => AbortSignal;

class Context {
  readonly #signal: SignalOf;

  constructor(signal: SignalOf) {
    this.#signal = signal;
  }

  get signal(): AbortSignal {
    return this.#signal();
  }
}

/** Taken before the plugin is loaded, which may replace what everybody uses. */
const { freeze, keys: keysOf, assign, defineProperty } = Object;
const { parse } = JSON;
const { get } = Reflect;

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  const names = keysOf(value);
  for (let i = 0; i < names.length; i += 1) frozen(get(value, names[i] ?? ''));
  return freeze(value);
}

/**
 * @param given members as the service has sent them.
 * @param text the answer of the upstream, if it is large.
 */
export function contextOf(hook: string, given: Members, text: (() => string) | undefined, signal: SignalOf): object {
  const { response, error, keys, ...rest } = given;
  const members: Record<string, unknown> = { ...frozen(rest) };
  if (response !== undefined) members.response = responseOf(response as Members, text);
  if (hook === 'onError') {
    members.api = given.api;
    members.endpoint = given.endpoint;
    members.error = new Error(String(error));
  }
  if (keys !== undefined) members.keys = frozen(keys);
  if (hook !== 'onError' && keys === undefined) return freeze(assign(new Context(signal), members));
  // As where the service makes such contexts, the signal is a member of its own.
  return freeze(defineProperty(members, 'signal', { get: signal, enumerable: true }));
}

function responseOf({ data, status }: Members, text: (() => string) | undefined): object {
  if (text === undefined) return freeze({ data, status });
  let copy: { readonly data: unknown } | undefined;
  return freeze({
    get data() {
      copy ??= { data: parse(text()) };
      return copy.data;
    },
    status,
  });
}
