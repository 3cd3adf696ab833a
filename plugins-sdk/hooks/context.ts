import { Charge } from '../../kernel/charge.ts';
import type { Exchange } from '../../kernel/exchange.ts';
import type { CallContext, Endpoint, JsonText } from '../../kernel/values.ts';
import { isRecord } from '../../lib/json/value.ts';
import { deepFreeze } from '../../lib/objects.ts';
import { ContextKey } from '../context-key.ts';
import type { HookContext, SignedAnswer } from './contexts.ts';
import { type Memo, memoText } from './memo.ts';

/** Memos as JSON texts, by plugin. An exchange and its forks share a map, so each replaces it instead of changing it. */
const memos = new ContextKey<ReadonlyMap<string, string>>('memos');

/** The part of a context that only the service sees. */
export interface Inside {
  readonly endpoint: Endpoint | undefined;
  /** The JSON text of the plugin's memo of the request, if any. */
  readonly memo: string | undefined;
  /** The JSON text that `answer` is parsed from. */
  readonly answer: string | undefined;
  /** Replaces a hook's memo by the one that the hook left in another process. */
  replaceMemo(memo: Memo): void;
  /** Does work for a hook whose time is not charged to its plugin. */
  uncharged<T>(work: () => Promise<T>): Promise<T>;
}

/** Returns the service's part of a context, or `undefined` for any other object. */
export let insideOf: (context: object) => Inside | undefined;
/** Stores the memo of a hook that has succeeded. Later writes are never read. @throws WrongShape */
export let keepMemo: (context: unknown) => void;
/** Returns a copy of a context with the further member `keys`. Both share one memo. */
export let withKeys: (context: object, keys: object) => object;

interface Names {
  readonly id: string;
  readonly api: string | undefined;
  readonly name: string | undefined;
}

/**
 * The members that all public contexts have. It is a class because an object with its own accessors costs more than all the rest.
 * It has its own fields because a further object for them costs a quarter more.
 */
class Context {
  readonly requestId: string;
  readonly endpointId: string;
  readonly api: string | undefined;
  readonly endpoint: string | undefined;
  readonly #exchange: Exchange;
  readonly #call: CallContext;
  readonly #plugin: string;
  readonly #sent: JsonText | undefined;
  /** The context whose memo it shares. */
  #inner: Context = this;
  #memo: Memo | undefined;
  #answer: SignedAnswer | undefined;

  constructor(
    exchange: Exchange,
    { id, api, name }: Names,
    call: CallContext,
    plugin: string,
    sent: JsonText | undefined,
  ) {
    this.requestId = exchange.requestId;
    this.endpointId = id;
    this.api = api;
    this.endpoint = name;
    this.#exchange = exchange;
    this.#call = call;
    this.#plugin = plugin;
    this.#sent = sent;
  }

  static {
    insideOf = (context) => {
      if (!(#call in context)) return undefined;
      const own = context.#inner;
      const call = own.#call;
      return {
        endpoint: own.#exchange.resolved,
        memo: own.#kept,
        answer: own.#sent?.json,
        replaceMemo: (memo) => {
          own.#memo = memo;
        },
        uncharged: (work) => (call instanceof Charge ? call.uncharged(work) : work()),
      };
    };
    keepMemo = (context) => {
      if (isRecord(context) && #call in context && context.#memo !== undefined) context.#keep(context.#memo);
    };
    withKeys = (context, keys) => {
      if (!(#call in context)) throw new TypeError('it is no context of a hook');
      const { endpointId: id, api, endpoint: name } = context;
      const own = new Context(context.#exchange, { id, api, name }, context.#call, context.#plugin, context.#sent);
      own.#inner = context;
      const members = Object.getOwnPropertyDescriptors(context);
      const signal = { get: () => context.signal, enumerable: true };
      const added = { ...members, signal, keys: { value: keys, enumerable: true } };
      return Object.freeze(Object.defineProperties(own, added));
    };
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get memo(): Memo {
    const own = this.#inner;
    own.#memo ??= JSON.parse(own.#kept ?? '{}') as Memo;
    return own.#memo;
  }

  /** The signed answer; only `onResponseSent` has one. */
  get answer(): SignedAnswer | undefined {
    if (this.#sent !== undefined) this.#answer ??= deepFreeze(JSON.parse(this.#sent.json) as SignedAnswer);
    return this.#answer;
  }

  get #kept(): string | undefined {
    return memos.get(this.#exchange)?.get(this.#plugin);
  }

  #keep(memo: Memo): void {
    const text = memoText(memo);
    if (text === (this.#kept ?? '{}')) return;
    memos.set(this.#exchange, new Map(memos.get(this.#exchange)).set(this.#plugin, text));
  }
}

/** Members that are made on first use. */
type Lazy = 'signal' | 'memo' | 'answer';

/**
 * Makes a context with the members of one hook. All hooks share one class, since V8 then builds objects in half the time.
 * @param sent the JSON of `answer`.
 */
export function contextOf<C extends HookContext>(
  exchange: Exchange,
  call: CallContext,
  plugin: string,
  own: Omit<C, keyof HookContext | Lazy>,
  sent?: JsonText,
): object {
  return Object.freeze(Object.assign(new Context(exchange, exchange.endpoint, call, plugin, sent), own));
}

/** Makes the context of `onError`, where there may be no endpoint. @param id the endpoint's id as sent. */
export function errorContextOf(exchange: Exchange, id: string, call: CallContext, plugin: string, own: object): object {
  const names = exchange.resolved ?? { id, api: undefined, name: undefined };
  const context = Object.assign(new Context(exchange, names, call, plugin, undefined), own);
  return Object.freeze(Object.defineProperty(context, 'signal', { get: () => call.signal, enumerable: true }));
}
