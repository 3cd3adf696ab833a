import { isUtf8 } from 'node:buffer';
import type { BoundedResponse } from '../../lib/http/client/index.ts';
import { MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { isFiniteJson } from '../../lib/json/numbers.ts';
import { JsonLimitError, skipSpace } from '../../lib/json/scan.ts';
import { isDeeperThan } from '../../lib/json/skip.ts';
import { inTurns, STEP } from '../../lib/json/turns.ts';
import { classOfStatus } from '../../plugins-sdk/failure-class.ts';
import type { ApiResponse, Json, OutgoingRequest, Refusal } from '../../plugins-sdk/index.ts';
import type { Awaitable } from '../../plugins-sdk/kernel.ts';
import { LongResponse } from '../../plugins-sdk/results/long-response.ts';
import { keep } from '../../plugins-sdk/results/read-response.ts';
import { failed, retryAfterOf } from '../shared/upstream-failure.ts';

/** Matches every number that is too large for a double, and some others. Such a number has an exponent of three digits, or 210 digits before one of two. */
const HUGE_NUMBER = /[eE]\+?\d{3}|(?<!\d)\d{210}/;

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** Bytes from which finding the values of an encoding in them takes less than parsing them all. */
const SEARCHED = 2 * 1024;

/** Statuses by which an upstream refuses what a client has asked for; other ones are about the operator, as a wrong key is. */
const OF_REQUESTERS: ReadonlySet<number> = new Set([400, 404, 422]);

/** What an answer is for. */
interface Asked {
  /** Whether some of its values are signed instead of all. */
  readonly isEncoded: boolean;
  /** Whether a parameter of the request has its value from the client. */
  readonly hasClientValue: boolean;
}

/** The refusal of an answer that says nothing that can be signed. */
function unusable(reason: string, upstreamStatus: number): Refusal {
  return failed(reason, 'body', { upstreamStatus });
}

/**
 * @param request that was answered.
 * @throws Refusal 502 unless the answer is a success in JSON that every later stage can handle.
 */
export function accept(
  { status, headers, body }: BoundedResponse,
  request: OutgoingRequest,
  { isEncoded, hasClientValue }: Asked,
): Awaitable<ApiResponse> {
  if (status < 200 || status > 299) {
    const retryAfter = retryAfterOf(headers);
    const said = { upstreamStatus: status, retryAfter };
    if (hasClientValue && OF_REQUESTERS.has(status))
      throw failed(`upstream status ${status} to what the client asked for`, 'requester', said);
    throw failed(`upstream status ${status}`, classOfStatus(status), said);
  }
  if (!isUtf8(body)) throw unusable('the body is not in UTF-8', status);
  const hasMark = body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const bytes = hasMark ? body.subarray(BYTE_ORDER_MARK.length) : body;
  if (skipSpace(bytes, 0) === bytes.length) return keep({ status, data: null, text: '', request });
  const isLong = bytes.length > (isEncoded ? SEARCHED : STEP);
  return isLong ? readLong(status, bytes, request) : keep({ status, ...read(bytes, status), request });
}

function read(bytes: Buffer, status: number): Pick<ApiResponse, 'data' | 'text'> {
  const text = bytes.toString();
  // A shorter text cannot open and close as many.
  if (bytes.length > 2 * MAX_JSON_DEPTH && isDeeperThan(bytes, MAX_JSON_DEPTH))
    throw unusable(`nested deeper than ${MAX_JSON_DEPTH} levels`, status);
  const data = parse(text, status);
  if (HUGE_NUMBER.test(text) && !isFiniteJson(data)) throw unusable('a number is too large for standard JSON', status);
  return { data, text };
}

function parse(text: string, status: number): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable('the body is no JSON', status);
  }
}

async function readLong(status: number, bytes: Buffer, request: OutgoingRequest): Promise<ApiResponse> {
  try {
    return await inTurns(LongResponse.read(status, bytes, request));
  } catch (error) {
    throw unusable(error instanceof JsonLimitError ? error.message : 'the body is no JSON', status);
  }
}
