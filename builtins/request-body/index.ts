import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { TextMemo } from '../../lib/bounded/text-memo.ts';
import { MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { markedMembers, parseMarked } from '../../lib/json/numbers.ts';
import { isDeeperThan } from '../../lib/json/skip.ts';
import { isRecord } from '../../lib/json/value.ts';
import { strictKey } from '../../plugins-sdk/config.ts';
import { definePlugin, type Parameters, perEndpoint, rawBody, writtenParameters } from '../../plugins-sdk/index.ts';
import { responses } from './openapi.ts';
import { BODY_LIMIT, refusals } from './refusals.ts';

/** Milliseconds per request: the server ends a request of which more has not come in 30 seconds. */
const BUDGET_MS = 31_000;

const JSON_TYPE = 'application/json';

/** JSON as it is, in no compressed form. A charset means nothing: JSON is UTF-8 (RFC 8259, section 8.1). */
function announcesJson(headers: IncomingHttpHeaders): boolean {
  const { 'content-type': full = '' } = headers;
  const type = full === JSON_TYPE ? full : full.replace(/;.*$/s, '').trim().toLowerCase();
  const { 'content-encoding': coding = '', 'transfer-encoding': transfer = 'chunked' } = headers;
  return type === JSON_TYPE && !COMPRESSED.test(coding) && transfer.toLowerCase() === 'chunked';
}

/** A list of codings with one that changes the body; an empty list is one of none (RFC 9110, section 5.6.1). */
const COMPRESSED = /(?:^|,)[\t ]*(?!identity[\t ]*(?:,|$))[^\t ,]/i;

function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw refusals.invalidJson();
  const text = bytes.toString();
  // A byte order mark may be ignored (RFC 8259, section 8.1).
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refusals.invalidJson();
  }
}

/** What a body says, the same for all who send it: nobody can change it. */
interface Said {
  readonly parameters: Parameters;
  /** Whether it names parameters at all. */
  readonly hasParameters: boolean;
  /** Those with a number that a double would round. */
  readonly written: Parameters | undefined;
}

/** @throws Refusal */
function read(bytes: Buffer): Said {
  const text = decode(bytes);
  const body = text === '' ? {} : parse(text);
  // A shorter text cannot open and close as many.
  if (bytes.length > 2 * MAX_JSON_DEPTH && isDeeperThan(bytes, MAX_JSON_DEPTH)) throw refusals.tooDeep();
  if (!isRecord(body)) throw refusals.bodyNotObject();
  const { parameters = {} } = body;
  if (!isRecord(parameters)) throw refusals.parametersNotObject();
  const given = frozen(parameters as Parameters);
  const written = MAY_BE_INEXACT.test(text) ? writtenIn(text) : undefined;
  return { parameters: given, hasParameters: Object.hasOwn(body, 'parameters'), written };
}

/** Matches, among others, every number that a double may round: it has 16 digits, or a negative exponent of three. */
const MAY_BE_INEXACT = /[:,[\s]-?(?:[\d.]{16}|[\d.]+[eE]-\d{3})/;

function writtenIn(text: string): Parameters | undefined {
  const { parameters = {} } = parseMarked(text) as { readonly parameters?: Parameters };
  const written = markedMembers(parameters);
  return Object.keys(written).length > 0 ? frozen(written) : undefined;
}

/** Refuses on the way what could not be sent on: a number such as 1e999 that no double can hold. */
function frozen<T>(value: T): T {
  if (typeof value === 'number' && !Number.isFinite(value)) throw refusals.invalidJson();
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}

/** Reads the `parameters` of a request: at most 64 KB of JSON. */
export const requestBody = definePlugin({
  name: 'request-body',
  budget: BUDGET_MS,
  openapi: () => ({ operation: () => ({ responses }) }),
  setup({ endpoints }) {
    const isStrict = perEndpoint(endpoints, (endpoint) => strictKey.of(endpoint) === true);
    // Clients ask the same again and again.
    const known = new TextMemo<Said>();
    return {
      hooks: {
        parseBody: (httpRequest, exchange) => {
          const { headers } = httpRequest.request;
          if (!announcesJson(headers)) throw refusals.contentType();
          const take = (bytes: Buffer) => {
            rawBody.set(exchange, bytes);
            const { parameters, hasParameters, written } = known.of(bytes.toString('latin1'), () => read(bytes));
            if (!hasParameters && isStrict(exchange.endpoint)) throw refusals.noParameters();
            if (written !== undefined) writtenParameters.set(exchange, written);
            return parameters;
          };
          return httpRequest.readBody(BODY_LIMIT).then(take);
        },
      },
    };
  },
});
