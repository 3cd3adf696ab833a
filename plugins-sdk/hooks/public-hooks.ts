import type { Exchange } from '../../kernel/exchange.ts';
import type { ArgsOf, ResultOf, StageName } from '../../kernel/stages.ts';
import type { ApiResponse, CallContext } from '../../kernel/values.ts';
import { clientIp } from '../context-key.ts';
import type { ContextStage } from '../stage-functions.ts';
import { contextOf } from './context.ts';
import type {
  AfterApiCallContext,
  BeforeApiCallContext,
  BeforeSignContext,
  ErrorContext,
  HttpRequestContext,
  ResponseSentContext,
} from './contexts.ts';
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
interface PublicHook<N extends StageName> {
  /** @param hidden lower-case names of request headers that functions must not see. */
  context(args: ArgsOf<N>, call: CallContext, hidden: ReadonlySet<string>, plugin: string): object;
  /** Reads a hook's result; absent at a watch, whose results are ignored. @throws WrongShape */
  accept?(value: unknown, args: ArgsOf<N>, plugin: string): ResultOf<N> | undefined;
}

/** The public hooks by stage. */
export const publicHooks: { readonly [N in ContextStage]: PublicHook<N> } = {
  onHttpRequest: {
    context: ([exchange], call, hidden, plugin) => {
      const { parameters } = exchange;
      const own = { parameters, headers: headersFor(exchange, hidden), ip: clientIp(exchange) };
      return contextOf<HttpRequestContext>(exchange, call, plugin, own);
    },
    accept: (value, _, plugin) => takeRejection(value, plugin),
  },
  onBeforeApiCall: {
    context: ([parameters, exchange], call, _, plugin) =>
      contextOf<BeforeApiCallContext>(exchange, call, plugin, { parameters }),
    accept: takeParameters,
  },
  onAfterApiCall: {
    context: ([response, parameters, exchange], call, _, plugin) =>
      contextOf<AfterApiCallContext>(exchange, call, plugin, { parameters, response: responseView(response) }),
    accept: (value, [response]) => takeResponse(value, response),
  },
  onBeforeSign: {
    context: ([data, exchange], call, _, plugin) => contextOf<BeforeSignContext>(exchange, call, plugin, { data }),
    accept: takeData,
  },
  onResponseSent: {
    context: ([status, answer, exchange], call, _, plugin) => {
      const own = { duration: exchange.elapsed(), status };
      return contextOf<ResponseSentContext>(exchange, call, plugin, own, answer);
    },
  },
  onError: {
    context: ([refusal, id, exchange], call, _, plugin) => {
      const { stage = 'unknown', status } = refusal;
      const own = { endpointId: exchange.resolved?.id ?? id, error: new Error(refusal.message), stage, status };
      return contextOf<ErrorContext>(exchange, call, plugin, own);
    },
  },
};
