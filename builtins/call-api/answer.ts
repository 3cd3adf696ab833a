import { setImmediate } from 'node:timers/promises';
import {
  type ApiResponse,
  type Awaitable,
  type BoundedResponse,
  isDeeperThan,
  isFiniteJson,
  type Json,
  MAX_JSON_DEPTH,
  Refusal,
} from '../../plugins-sdk/index.ts';
import { parseJsonInSteps } from '../../plugins-sdk/parse-json.ts';

/** Characters of JSON up to which parsing them is a matter of a few milliseconds. */
const AT_ONCE = 64 * 1024;

/** What the text of every number too large for a double holds: an exponent of three digits, or as many places. */
const HUGE_NUMBER = /[eE]\+?\d{3}|(?<!\d)\d{309}/;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** What the client gets to know of a call that failed. */
export function failed(reason: string): Refusal {
  return new Refusal(502, 'API call failed', { reason });
}

/** @throws Refusal 502 unless the answer is a success in JSON that every later stage can handle. */
export function accept({ status, body }: BoundedResponse): Awaitable<ApiResponse> {
  if (status < 200 || status > 299) throw failed(`upstream status ${status}`);
  const text = decode(body);
  if (/^[ \t\r\n]*$/.test(text)) return { status, data: null, text: '' };
  if (isDeeperThan(text, MAX_JSON_DEPTH)) throw failed(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  const take = (data: Json): ApiResponse => {
    if (HUGE_NUMBER.test(text) && !isFiniteJson(data)) throw failed('a number is too large for standard JSON');
    return { status, data, text };
  };
  return text.length <= AT_ONCE ? take(parseJson(text)) : parseLongJson(text).then(take);
}

function decode(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw failed('the body is not in UTF-8');
  }
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw failed('the body is no JSON');
  }
}

async function parseLongJson(text: string): Promise<Json> {
  try {
    const data = await parseJsonInSteps(text);
    // What comes next gets a turn of its own.
    await setImmediate();
    return data;
  } catch {
    throw failed('the body is no JSON');
  }
}
