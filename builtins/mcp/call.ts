import type { CallToolResult, CallToolRequestParams as ToolCall } from '@modelcontextprotocol/server';
import { isFiniteJson } from '../../lib/json/numbers.ts';
import { jsonIn } from '../../lib/json/value.ts';
import {
  type AskedResponse,
  type Exchange,
  isRefusal,
  type Parameters,
  type Services,
  takeParameters,
} from '../../plugins-sdk/index.ts';
import { INEXACT, invalidParameter, TOO_DEEP } from '../shared/parameter-value.ts';
import { type EndpointTool, META } from './tools.ts';

/** Members of `_meta` that replace HTTP headers (x402, transport MCP). */
const PAYMENT = 'x402/payment';
const SETTLEMENT = 'x402/payment-response';

function refusal(status: number, error: string): AskedResponse {
  return { status, headers: {}, body: JSON.stringify({ error }) };
}

/**
 * Returns the headers to ask an endpoint with. MCP clients send a service's API key as a bearer token.
 * The `Authorization` header is passed on only if a plugin of the service reads it.
 * Returns undefined for a payment that is nested too deeply.
 */
function headersOf({ headers }: Exchange, { _meta }: ToolCall, credentials: Services['credentials']) {
  const [, token] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  const isWanted = credentials.some((name) => name.toLowerCase() === 'authorization');
  const key = token === undefined ? {} : { 'x-api-key': headers['x-api-key'] ?? token };
  const payment = _meta?.[PAYMENT];
  const common = { ...key, ...(!isWanted && { authorization: undefined }) };
  if (payment === undefined) return common;
  try {
    return { ...common, 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') };
  } catch {
    return undefined;
  }
}

function headerOf({ headers }: AskedResponse, name: string): string | undefined {
  return Object.entries(headers).find(([sent]) => sent.toLowerCase() === name)?.[1];
}

/** Makes a tool's result: the signed answer, or a refusal; a payment's terms are an object, other refusals a text. */
function resultOf(response: AskedResponse, { tool }: EndpointTool): CallToolResult {
  const { status, body } = response;
  const settlement = headerOf(response, 'payment-response');
  const paid = settlement !== undefined && {
    [SETTLEMENT]: Object(jsonIn(Buffer.from(settlement, 'base64').toString())),
  };
  if (status === 200) {
    const _meta = { ...tool._meta, ...paid };
    return { content: [{ type: 'text', text: body }], structuredContent: JSON.parse(body), _meta };
  }
  const said: Readonly<Record<string, unknown>> = Object(jsonIn(body));
  const retryAfter = Number(headerOf(response, 'retry-after'));
  const refused = { status, ...(retryAfter >= 0 && { retryAfter }) };
  const isTerms = status === 402;
  return {
    isError: true,
    content: [{ type: 'text', text: isTerms ? body : String(said.error) }],
    ...(isTerms && { structuredContent: { ...said } }),
    _meta: { [`${META}/refusal`]: refused, ...paid },
  };
}

/** Returns why arguments are refused, in the words of the service: arguments that the service would refuse in a request, too. */
function faultIn(parameters: Parameters): string | undefined {
  try {
    const inexact = Object.keys(parameters).find((name) => !isFiniteJson(parameters[name] ?? null));
    if (inexact !== undefined) return invalidParameter(inexact, INEXACT);
    takeParameters({ parameters });
    return undefined;
  } catch {
    return TOO_DEEP;
  }
}

/** Returns a function that asks a tool's endpoint as the client itself would. It waits for the answer in any mode. */
export function caller({ ask, admit, credentials, log }: Pick<Services, 'ask' | 'admit' | 'credentials' | 'log'>) {
  const answer = async ({ endpoint }: EndpointTool, call: ToolCall, exchange: Exchange): Promise<AskedResponse> => {
    const parameters = (call.arguments ?? {}) as Parameters;
    const fault = faultIn(parameters);
    const headers = headersOf(exchange, call, credentials);
    if (fault !== undefined || headers === undefined) {
      // The endpoint is not asked, but the call still counts for rate limits.
      await admit(exchange);
      return refusal(400, fault ?? TOO_DEEP);
    }
    return ask(endpoint.id, parameters, { as: exchange, headers, mode: 'sync' });
  };
  return async (tool: EndpointTool, call: ToolCall, exchange: Exchange): Promise<CallToolResult> => {
    const failed = (error: unknown): AskedResponse => {
      if (isRefusal(error)) return { ...refusal(error.status, error.message), headers: error.headers };
      log.error('a tool could not be called', { tool: tool.tool.name, error: String(error) });
      return refusal(500, 'Internal server error');
    };
    return resultOf(await answer(tool, call, exchange).catch(failed), tool);
  };
}
