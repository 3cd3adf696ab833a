import type { Exchange } from '../../kernel/exchange.ts';
import type { ArgsOf, Contract, ResultOf } from '../../kernel/stages.ts';
import type { ApiResponse, JsonText } from '../../kernel/values.ts';
import { clientIp } from '../context-key.ts';
import type { ContextStage } from '../stage-functions.ts';
import { contextOf, keepMemo } from './context.ts';
import type { AfterApiCallContext, HookContext, HttpRequestContext, PublicHooks } from './contexts.ts';
import { takeData, takeParameters, takeRejection, takeResponse } from './results.ts';

function headersFor(exchange: Exchange, hidden: ReadonlySet<string>): HttpRequestContext['headers'] {
  const headers: Record<string, string | undefined> = {};
  for (const name in exchange.headers) if (!hidden.has(name)) headers[name] = exchange.headers[name];
  return Object.freeze(headers);
}

/** Characters of JSON up to which a copy at once costs less than an accessor that makes it later. */
const SMALL = 16 * 1024;

function copyOf(response: ApiResponse): ApiResponse['data'] {
  return JSON.parse(jsonOf(response));
}

/** Returns a response's JSON. An empty `text` means a response without a body. */
function jsonOf({ data, text }: ApiResponse): string {
  return text || JSON.stringify(data);
}

/** Responses by their views, for views whose data is copied on first use. */
const large = new WeakMap<object, ApiResponse>();

/** Returns the JSON of a view's large response, so that nothing need be copied; `undefined` for a small one. */
export function responseTextOf(view: object): string | undefined {
  const response = large.get(view);
  return response && jsonOf(response);
}

/** Returns a hook's view of a response. Large data is copied only if the hook reads it, since the copy takes milliseconds. */
export function responseView(response: ApiResponse): AfterApiCallContext['response'] {
  const { status, text } = response;
  if (text !== undefined && text.length <= SMALL) return Object.freeze({ data: copyOf(response), status });
  let copy: ApiResponse['data'] | undefined;
  const view = Object.freeze({
    get data() {
      copy ??= copyOf(response);
      return copy;
    },
    status,
  });
  large.set(view, response);
  return view;
}

/** How a public hook's context is made from the stage's arguments, and how the hook's result is read. */
interface PublicHook<N extends ContextStage> {
  /** Returns the members that the context has beside those of all hooks. @param hidden lower-case names of request headers. */
  own(args: ArgsOf<N>, hidden: ReadonlySet<string>): Own<Parameters<PublicHooks[N]>[0]>;
  /** Returns the JSON of the context's `answer`. */
  answer?(args: ArgsOf<N>): JsonText;
  /** Reads a hook's result; absent at a watch, whose results are ignored. @throws WrongShape */
  accept?(value: unknown, args: ArgsOf<N>, plugin: string): ResultOf<N> | undefined;
}

/** The id as sent is for a request that may have matched no endpoint. */
type Own<C> = Omit<C, keyof HookContext | 'answer'> & { readonly endpointId?: string };

/** The public hooks by stage. */
export const publicHooks: { readonly [N in ContextStage]: PublicHook<N> } = {
  onHttpRequest: {
    own: ([exchange], hidden) => {
      const { parameters } = exchange;
      return { parameters, headers: headersFor(exchange, hidden), ip: clientIp(exchange) };
    },
    accept: (value, _, plugin) => takeRejection(value, plugin),
  },
  onBeforeApiCall: { own: ([parameters]) => ({ parameters }), accept: takeParameters },
  onAfterApiCall: {
    own: ([response, parameters]) => ({ parameters, response: responseView(response) }),
    accept: (value, [response]) => takeResponse(value, response),
  },
  onBeforeSign: { own: ([data]) => ({ data }), accept: takeData },
  onResponseSent: {
    own: ([status, , exchange]) => ({ duration: exchange.elapsed(), status }),
    answer: ([, answer]) => answer,
  },
  onError: {
    own: ([{ stage = 'unknown', status, message }, id, { resolved }]) => {
      return { endpointId: resolved?.id ?? id, error: new Error(message), stage, status };
    },
  },
};

/** Returns the contract of a public stage. */
export function hookContract(stage: ContextStage): Contract {
  const { own, answer, ...reader }: PublicHook<never> = publicHooks[stage];
  return {
    context: (args, call, hidden, plugin) => {
      const members: object = own(args as never, hidden);
      return contextOf(args[args.length - 1] as Exchange, call, plugin, members, answer?.(args as never));
    },
    ended: keepMemo,
    ...(reader as Pick<Contract, 'accept'>),
  };
}
