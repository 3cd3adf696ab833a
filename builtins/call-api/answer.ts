import { isUtf8 } from 'node:buffer';
import type { BoundedResponse } from '../../lib/http/client/index.ts';
import { JsonLimitError, readJson } from '../../lib/json/read.ts';
import { keys } from '../../plugins-sdk/config.ts';
import {
  type ApiResponse,
  type Exchange,
  type Json,
  keep,
  type OutgoingRequest,
  type Refusal,
} from '../../plugins-sdk/index.ts';
import { classOfStatus } from '../../plugins-sdk/observe.ts';
import { isLeftOut } from '../shared/parameter-value.ts';
import { failed, retryAfterOf } from '../shared/upstream.ts';

const BYTE_ORDER_MARK = Buffer.from('\ufeff');
/** Matches a character that is no white space in JSON. */
const NOT_SPACE = /[^ \t\r\n]/;

/** Statuses by which an upstream refuses a client's values; others concern the operator, as for a wrong key. */
const OF_REQUESTERS: ReadonlySet<number> = new Set([400, 404, 422]);

/** Makes the refusal of an answer with nothing that can be signed. */
function unusable(reason: string, upstreamStatus: number): Refusal {
  return failed(reason, 'body', { upstreamStatus });
}

/**
 * Checks and reads an upstream answer.
 * @param request that was answered.
 * @throws Refusal 502 unless the answer is a success in JSON that every later stage can handle.
 */
export function accept(
  { status, headers, body }: BoundedResponse,
  request: OutgoingRequest,
  exchange: Exchange,
): ApiResponse {
  if (status < 200 || status > 299) {
    const said = { upstreamStatus: status, retryAfter: retryAfterOf(headers) };
    if (OF_REQUESTERS.has(status) && hasClientValue(exchange))
      throw failed(`upstream status ${status} to what the client asked for`, 'requester', said);
    throw failed(`upstream status ${status}`, classOfStatus(status), said);
  }
  if (!isUtf8(body)) throw unusable('the body is not in UTF-8', status);
  const hasMark = body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const text = body.toString('utf8', hasMark ? BYTE_ORDER_MARK.length : 0);
  if (!NOT_SPACE.test(text)) return keep({ status, data: null, text: '', request });
  return keep({ status, data: read(text, status), text, request });
}

/** Whether a parameter of the request has its value from the client. */
function hasClientValue({ endpoint, parameters }: Exchange): boolean {
  const declared = keys.parameters.of(endpoint) ?? [];
  return declared.some((parameter) => parameter.fixed === undefined && !isLeftOut(parameter, parameters));
}

function read(text: string, status: number): Json {
  try {
    return readJson(text);
  } catch (error) {
    throw unusable(error instanceof JsonLimitError ? error.message : 'the body is no JSON', status);
  }
}
