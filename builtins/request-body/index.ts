import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import { MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { isDeeperThan } from '../../lib/json/json-text.ts';
import { isFiniteJson, MAY_BE_INEXACT, markedMembers, parseMarked } from '../../lib/json/numbers.ts';
import { deepFreeze, isRecord, jsonIn } from '../../lib/json/value.ts';
import { strictKey } from '../../plugins-sdk/config.ts';
import { definePlugin, type Parameters, perEndpoint, rawBody, writtenParameters } from '../../plugins-sdk/index.ts';
import { responses } from './openapi.ts';
import { BODY_LIMIT, refusals } from './refusals.ts';

/** Milliseconds per request: the server ends a request whose body has not arrived within 30 seconds. */
const BUDGET_MS = 31_000;

const JSON_TYPE = 'application/json';

/** Whether the headers announce uncompressed JSON. A charset is ignored: JSON is UTF-8 (RFC 8259, section 8.1). */
function announcesJson(headers: IncomingHttpHeaders): boolean {
  const { 'content-type': full = '' } = headers;
  const type = full === JSON_TYPE ? full : full.replace(/;.*$/s, '').trim().toLowerCase();
  const { 'content-encoding': coding = '', 'transfer-encoding': transfer = 'chunked' } = headers;
  return type === JSON_TYPE && !COMPRESSED.test(coding) && transfer.toLowerCase() === 'chunked';
}

/** Matches a list of codings that has one besides `identity`; list members may be empty (RFC 9110, section 5.6.1). */
const COMPRESSED = /(?:^|,)[\t ]*(?!identity[\t ]*(?:,|$))[^\t ,]/i;

function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw refusals.invalidJson();
  const text = bytes.toString();
  // A byte order mark may be ignored (RFC 8259, section 8.1).
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** The content of a body. All requests with the same body share it, so it is frozen. */
type Said = Readonly<ReturnType<typeof read>>;

/** Reads and checks a body. @throws Refusal 400 */
function read(bytes: Buffer) {
  const text = decode(bytes);
  const body = text === '' ? {} : jsonIn(text);
  if (body === undefined) throw refusals.invalidJson();
  // A shorter text cannot open and close that many levels.
  if (bytes.length > 2 * MAX_JSON_DEPTH && isDeeperThan(bytes, MAX_JSON_DEPTH)) throw refusals.tooDeep();
  if (!isRecord(body)) throw refusals.bodyNotObject();
  const { parameters = {} } = body;
  if (!isRecord(parameters)) throw refusals.parametersNotObject();
  // No double holds a number such as 1e999: it could not be sent upstream.
  if (!isFiniteJson(parameters as Parameters)) throw refusals.invalidJson();
  const given = deepFreeze(parameters as Parameters);
  const written = MAY_BE_INEXACT.test(text) ? writtenIn(text) : undefined;
  return { parameters: given, hasParameters: Object.hasOwn(body, 'parameters'), written };
}

/** Returns the parameters with a number that a double would round, as the client wrote them. */
function writtenIn(text: string): Parameters | undefined {
  const { parameters = {} } = parseMarked(text) as { readonly parameters?: Parameters };
  const written = markedMembers(parameters);
  return Object.keys(written).length > 0 ? deepFreeze(written) : undefined;
}

/** Most bodies that are remembered, and most characters of one. */
const MOST_KNOWN = 1000;
const LONGEST_KNOWN = 512;

/** Reads the `parameters` of a request: at most 64 KB of JSON. */
export const requestBody = definePlugin({
  name: 'request-body',
  budget: BUDGET_MS,
  openapi: () => ({ operation: () => ({ responses }) }),
  setup({ endpoints }) {
    const isStrict = perEndpoint(endpoints, (endpoint) => strictKey.of(endpoint) === true);
    // Clients often send the same body.
    const known = new LRUCache<string, Said>({ max: MOST_KNOWN });
    return {
      hooks: {
        parseBody: (httpRequest, exchange) => {
          const { headers } = httpRequest.request;
          if (!announcesJson(headers)) throw refusals.contentType();
          const take = (bytes: Buffer) => {
            rawBody.set(exchange, bytes);
            const text = bytes.toString('latin1');
            // All of a text is hashed to look it up: for a long one that takes longer than to read it.
            const isShort = text.length <= LONGEST_KNOWN;
            const found = isShort ? known.get(text) : undefined;
            const said = found ?? read(bytes);
            if (isShort && found === undefined) known.set(text, said);
            const { parameters, hasParameters, written } = said;
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
