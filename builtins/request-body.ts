import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { TextMemo } from '../lib/bounded/text-memo.ts';
import { MAX_JSON_DEPTH } from '../lib/json/canonical-json.ts';
import { infiniteMembers } from '../lib/json/numbers.ts';
import { isDeeperThan } from '../lib/json/skip.ts';
import { isRecord } from '../lib/json/value.ts';
import { strictKey } from '../plugins-sdk/config.ts';
import {
  definePlugin,
  inexactParameters,
  type Parameters,
  perEndpoint,
  Refusal,
  rawBody,
  withoutRoundedNumbers,
} from '../plugins-sdk/index.ts';
import type { Responses } from '../plugins-sdk/openapi.ts';
import { TOO_DEEP } from './shared/parameter-value.ts';

/** Milliseconds per request: the server ends a request of which more has not come in 30 seconds. */
const BUDGET_MS = 31_000;
/** Bytes of a request body, as received. */
const BODY_LIMIT = 65_536;

/** Refusals of the body itself. */
const answers = {
  contentType: () => new Refusal(415, 'Content-Type must be application/json'),
  tooLarge: () => new Refusal(413, 'Request body too large'),
  invalidJson: () => new Refusal(400, 'Request body must be valid JSON'),
  tooDeep: () => new Refusal(400, TOO_DEEP),
  bodyNotObject: () => new Refusal(400, 'Request body must be an object'),
  noParameters: () => new Refusal(400, 'Request body must have parameters'),
  parametersNotObject: () => new Refusal(400, 'Request parameters must be an object'),
};

const messageOf = ({ message }: Refusal) => message;

const described: Responses = {
  400: {
    description: 'The request is wrong',
    errors: [answers.invalidJson(), answers.tooDeep(), answers.bodyNotObject(), answers.parametersNotObject()].map(
      messageOf,
    ),
  },
  413: {
    name: 'BodyTooLarge',
    description: `The request body is larger than ${BODY_LIMIT.toLocaleString('en')} bytes`,
    errors: [messageOf(answers.tooLarge())],
  },
  415: {
    name: 'WrongMediaType',
    description: 'The request body is announced as something else, or compressed',
    errors: [messageOf(answers.contentType())],
  },
};

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
  if (!isUtf8(bytes)) throw answers.invalidJson();
  const text = bytes.toString();
  // A byte order mark may be ignored (RFC 8259, section 8.1).
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw answers.invalidJson();
  }
}

/** What a body says, the same for all who send it: nobody can change it. */
interface Said {
  readonly parameters: Parameters;
  /** Whether it names parameters at all. */
  readonly hasParameters: boolean;
  readonly inexact: ReadonlySet<string> | undefined;
}

/** @throws Refusal */
function read(bytes: Buffer): Said {
  const text = decode(bytes);
  const body = text === '' ? {} : parse(text);
  // A shorter text cannot open and close as many.
  if (bytes.length > 2 * MAX_JSON_DEPTH && isDeeperThan(bytes, MAX_JSON_DEPTH)) throw answers.tooDeep();
  if (!isRecord(body)) throw answers.bodyNotObject();
  const { parameters = {} } = body;
  if (!isRecord(parameters)) throw answers.parametersNotObject();
  const given = frozen(parameters as Parameters);
  const inexact = MAY_BE_INEXACT.test(text) ? inexactIn(text) : undefined;
  return { parameters: given, hasParameters: Object.hasOwn(body, 'parameters'), inexact };
}

/** Matches, among others, every number that a double may round: it has 16 digits, or a negative exponent of three. */
const MAY_BE_INEXACT = /[:,[\s]-?(?:[\d.]{16}|[\d.]+[eE]-\d{3})/;

function inexactIn(text: string): ReadonlySet<string> | undefined {
  const { parameters = {} }: { parameters?: Parameters } = JSON.parse(withoutRoundedNumbers(text));
  const inexact = infiniteMembers(parameters);
  return inexact.length > 0 ? new Set(inexact) : undefined;
}

/** Refuses on the way what could not be sent on: a number such as 1e999 that no double can hold. */
function frozen<T>(value: T): T {
  if (typeof value === 'number' && !Number.isFinite(value)) throw answers.invalidJson();
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}

/** Reads the `parameters` of a request: at most 64 KB of JSON. */
export const requestBody = definePlugin({
  name: 'request-body',
  budget: BUDGET_MS,
  openapi: () => ({ operation: () => ({ responses: described }) }),
  setup({ endpoints }) {
    const isStrict = perEndpoint(endpoints, (endpoint) => strictKey.of(endpoint) === true);
    // Clients ask the same again and again.
    const known = new TextMemo<Said>();
    return {
      hooks: {
        parseBody: (httpRequest, exchange) => {
          const { headers } = httpRequest.request;
          if (!announcesJson(headers)) throw answers.contentType();
          const take = (bytes: Buffer) => {
            rawBody.set(exchange, bytes);
            const { parameters, hasParameters, inexact } = known.of(bytes.toString('latin1'), () => read(bytes));
            if (!hasParameters && isStrict(exchange.endpoint)) throw answers.noParameters();
            if (inexact !== undefined) inexactParameters.set(exchange, inexact);
            return parameters;
          };
          return httpRequest.readBody(BODY_LIMIT).then(take);
        },
      },
    };
  },
});
