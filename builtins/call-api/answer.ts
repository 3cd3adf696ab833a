import { isUtf8 } from 'node:buffer';
import { classOfStatus, type FailureClass } from '../../plugins-sdk/failure-class.ts';
import { type ApiResponse, type Json, type OutgoingRequest, Refusal } from '../../plugins-sdk/index.ts';
import type { Awaitable } from '../../plugins-sdk/kernel.ts';
import type { BoundedResponse } from '../../plugins-sdk/lib/http/client/index.ts';
import { MAX_JSON_DEPTH } from '../../plugins-sdk/lib/json/canonical-json.ts';
import { isFiniteJson } from '../../plugins-sdk/lib/json/numbers.ts';
import { JsonLimitError, skipSpace } from '../../plugins-sdk/lib/json/scan.ts';
import { isDeeperThan } from '../../plugins-sdk/lib/json/skip.ts';
import { inTurns, STEP } from '../../plugins-sdk/lib/json/turns.ts';
import { LongResponse } from '../../plugins-sdk/results/long-response.ts';
import { keep } from '../../plugins-sdk/results/read-response.ts';

/** Matches, among others, every number that is too large for a double: it has an exponent of three digits, or 210 digits before one of two. */
const HUGE_NUMBER = /[eE]\+?\d{3}|(?<!\d)\d{210}/;

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** Bytes from which finding the values of an encoding in them takes less than parsing them all. */
const SEARCHED = 2 * 1024;

/** The refusal when the call failed; reason and class are for the log and for metrics. */
export function failed(reason: string, failureClass: FailureClass = 'body', upstreamStatus?: number): Refusal {
  return new Refusal(502, 'API call failed', { reason, failureClass, upstreamStatus });
}

/**
 * @param request that was answered.
 * @param isEncoded whether some of its values are signed instead of all.
 * @throws Refusal 502 unless the answer is a success in JSON that every later stage can handle.
 */
export function accept(
  { status, body }: BoundedResponse,
  request: OutgoingRequest,
  isEncoded: boolean,
): Awaitable<ApiResponse> {
  if (status < 200 || status > 299) throw failed(`upstream status ${status}`, classOfStatus(status), status);
  if (!isUtf8(body)) throw failed('the body is not in UTF-8');
  const hasMark = body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const bytes = hasMark ? body.subarray(BYTE_ORDER_MARK.length) : body;
  if (skipSpace(bytes, 0) === bytes.length) return keep({ status, data: null, text: '', request });
  const isLong = bytes.length > (isEncoded ? SEARCHED : STEP);
  return isLong ? readLong(status, bytes, request) : keep({ status, ...read(bytes), request });
}

function read(bytes: Buffer): Pick<ApiResponse, 'data' | 'text'> {
  const text = bytes.toString();
  // Shorter, it cannot open and close as many.
  if (bytes.length > 2 * MAX_JSON_DEPTH && isDeeperThan(bytes, MAX_JSON_DEPTH))
    throw failed(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  const data = parse(text);
  if (HUGE_NUMBER.test(text) && !isFiniteJson(data)) throw failed('a number is too large for standard JSON');
  return { data, text };
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw failed('the body is no JSON');
  }
}

async function readLong(status: number, bytes: Buffer, request: OutgoingRequest): Promise<ApiResponse> {
  try {
    return await inTurns(LongResponse.read(status, bytes, request));
  } catch (error) {
    throw failed(error instanceof JsonLimitError ? error.message : 'the body is no JSON');
  }
}
