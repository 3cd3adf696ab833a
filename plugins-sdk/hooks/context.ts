import { Charge } from '../../kernel/charge.ts';
import type { Exchange } from '../../kernel/exchange.ts';
import type { CallContext, Endpoint, JsonText } from '../../kernel/values.ts';
import { deepFreeze, isRecord } from '../../lib/json/value.ts';
import { ContextKey } from '../context-key.ts';
import type { SignedAnswer } from './contexts.ts';
import { type Memo, memoText } from './memo.ts';

/** Memos as JSON texts, by plugin. An exchange and its forks share a map, so each replaces it instead of changing it. */
const memos = new ContextKey<ReadonlyMap<string, string>>('memos');

/**
 * The members that all public contexts have. It is a class because an object with its own accessors costs more than all the rest.
 * It has its own fields because a further object for them costs a quarter more.
 */
class Context {
  readonly requestId: string;
  readonly endpointId: string | undefined;
  readonly api: string | undefined;
  readonly endpoint: string | undefined;
  readonly #exchange: Exchange;
  readonly #call: CallContext;
  readonly #plugin: string;
  readonly #sent: JsonText | undefined;
  #keys: object | undefined;
  #memo: Memo | undefined;
  #answer: SignedAnswer | undefined;

  constructor(exchange: Exchange, call: CallContext, plugin: string, sent: JsonText | undefined) {
    const { id, api, name }: Partial<Endpoint> = exchange.resolved ?? {};
    this.requestId = exchange.requestId;
    this.endpointId = id;
    this.api = api;
    this.endpoint = name;
    this.#exchange = exchange;
    this.#call = call;
    this.#plugin = plugin;
    this.#sent = sent;
  }

  /** Returns the part of a context that only the service sees, or `undefined` for any other object. */
  static insideOf(context: object) {
    if (!(#call in context)) return undefined;
    const call = context.#call;
    return {
      endpoint: context.#exchange.resolved,
      /** The JSON text of the plugin's memo of the request, if any. */
      memo: context.#kept,
      /** The JSON text that `answer` is parsed from. */
      answer: context.#sent?.json,
      /** The values of the plugin's config keys at the endpoint, if a hook was given them. */
      keys: context.#keys,
      /** Adds the member `keys`. */
      setKeys(keys: object): void {
        context.#keys = keys;
      },
      /** Replaces a hook's memo by the one that the hook left in another process. */
      replaceMemo(memo: Memo): void {
        context.#memo = memo;
      },
      /** Does work for a hook whose time is not charged to its plugin. */
      uncharged: <T>(work: () => Promise<T>): Promise<T> => (call instanceof Charge ? call.uncharged(work) : work()),
    };
  }

  /** Stores the memo of a hook that has succeeded. Later writes are never read. @throws WrongShape */
  static keepMemo(context: unknown): void {
    if (!isRecord(context) || !(#call in context) || context.#memo === undefined) return;
    const text = memoText(context.#memo);
    if (text === (context.#kept ?? '{}')) return;
    memos.set(context.#exchange, new Map(memos.get(context.#exchange)).set(context.#plugin, text));
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get memo(): Memo {
    this.#memo ??= JSON.parse(this.#kept ?? '{}') as Memo;
    return this.#memo;
  }

  /** The endpoint's values of the plugin's config keys; only plugins with such keys have them. */
  get keys(): object | undefined {
    return this.#keys;
  }

  /** The signed answer; only `onResponseSent` has one. */
  get answer(): SignedAnswer | undefined {
    if (this.#sent !== undefined) this.#answer ??= deepFreeze(JSON.parse(this.#sent.json) as SignedAnswer);
    return this.#answer;
  }

  get #kept(): string | undefined {
    return memos.get(this.#exchange)?.get(this.#plugin);
  }
}

export const { insideOf, keepMemo } = Context;
// Otherwise plugins would have them, as `context.constructor.insideOf`.
for (const name of ['insideOf', 'keepMemo']) Reflect.deleteProperty(Context, name);

/**
 * Makes a context. All hooks share one class, since V8 then builds objects in half the time.
 * @param own the members of one hook. @param sent the JSON of `answer`.
 */
export function contextOf(exchange: Exchange, call: CallContext, plugin: string, own: object, sent?: JsonText): object {
  return Object.freeze(Object.assign(new Context(exchange, call, plugin, sent), own));
}
