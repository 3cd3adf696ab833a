/** What hooks get, as where plugin and service share a process. It is frozen or a copy, with a signal that is made when it is asked for. */

type Members = Readonly<Record<string, unknown>>;

/** What is made when it is asked for. */
interface Lazy {
  signal(): AbortSignal;
  memo(): object;
}

class Context {
  readonly #lazy: Lazy;
  readonly #answer: () => unknown;

  constructor(lazy: Lazy, answer: () => unknown) {
    this.#lazy = lazy;
    this.#answer = answer;
  }

  get signal(): AbortSignal {
    return this.#lazy.signal();
  }

  get memo(): object {
    return this.#lazy.memo();
  }

  get answer(): unknown {
    return this.#answer();
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
 * @param text the answer of the upstream, if it is large; of `onResponseSent`, the signed one.
 */
export function contextOf(hook: string, given: Members, text: (() => string) | undefined, lazy: Lazy): object {
  const { response, error, keys, ...rest } = given;
  const members: Record<string, unknown> = { ...frozen(rest) };
  if (response !== undefined) members.response = responseOf(response as Members, text);
  if (hook === 'onError') {
    members.api = given.api;
    members.endpoint = given.endpoint;
    members.error = new Error(String(error));
  }
  if (keys !== undefined) members.keys = frozen(keys);
  const context = assign(new Context(lazy, answerOf(hook, text)), members);
  // As where the service makes such contexts, the signal is a member of its own.
  if (hook === 'onError' || keys !== undefined)
    defineProperty(context, 'signal', { get: lazy.signal, enumerable: true });
  return freeze(context);
}

function answerOf(hook: string, text: (() => string) | undefined): () => unknown {
  let answer: unknown;
  return () => {
    if (hook === 'onResponseSent' && text !== undefined) answer ??= frozen(parse(text()));
    return answer;
  };
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
