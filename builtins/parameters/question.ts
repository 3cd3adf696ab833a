import { hash } from 'node:crypto';
import { keccak256, toHex } from '../../lib/eth/hex.ts';
import { CanonicalJsonError, canonicalJson, jcs } from '../../lib/json/canonical-json.ts';
import { isMarked, parseExact, unmarkedJson } from '../../lib/json/numbers.ts';
import { clipped } from '../../lib/text.ts';
import { keys, type Parameter, receiptKey, reservedParameters, strictKey } from '../../plugins-sdk/config.ts';
import {
  AskedQuestion,
  type Endpoint,
  type Exchange,
  type Hex,
  type Json,
  type OutgoingRequest,
  type Parameters,
  type Question,
  Refusal,
  writtenParameters,
} from '../../plugins-sdk/index.ts';
import { parameterSchema } from '../shared/parameter-schema.ts';
import { INEXACT, invalidParameter, sentValue, valueIn } from '../shared/parameter-value.ts';
import { requiredIn } from '../shared/path-parameters.ts';
import { asWritten, withDigits } from '../shared/written-parameters.ts';
import { withForm } from './body.ts';
import { compileRequest } from './outgoing.ts';
import { type Declared, type OnNested, refuseNested, schemaInPlace, type Values } from './placement.ts';

/** The part of an endpoint's questions that is known before a request comes. */
type Prepared = Readonly<ReturnType<typeof prepare>>;

/** Prepares an endpoint. @param onNested called for a list or an object where only text is sent; a strict endpoint refuses it. */
export function prepare(endpoint: Endpoint, onNested: OnNested) {
  const isStrict = strictKey.of(endpoint) === true;
  const isRequired = requiredIn(endpoint);
  const all = withForm(endpoint, keys.parameters.of(endpoint) ?? []);
  const declared = all.map((one) => prepareOne(one, isRequired(one)));
  const free = declared.filter(({ fixed }) => fixed === undefined).map(({ name }) => name);
  const reserved = reservedParameters(endpoint);
  const request = compileRequest(endpoint, declared, isStrict ? refuseNested : onNested);
  const hasMap = declared.some(({ map }) => map !== undefined);
  return {
    ...{ id: endpoint.id, declared, reserved, hasReceipts: receiptKey.of(endpoint) === true },
    /** The names that a request may send; absent: any. */
    known: isStrict ? new Set([...free, ...reserved]) : undefined,
    request: hasMap
      ? (values: Values) => request(declared.map((one, index) => sentValue(one, values[index])))
      : request,
  };
}

/** Prepares a parameter to be resolved and checked. It has a `misfit` unless the client may send any value, or none. */
function prepareOne(parameter: Parameter & Partial<Declared>, required: boolean) {
  const { in: place = 'query', secret = false, schema, ...rest } = parameter;
  const isChecked = schema !== undefined && rest.fixed === undefined;
  const misfit = isChecked
    ? parameterSchema({ schema: schemaInPlace({ ...rest, in: place }, schema), secret }, '').misfit
    : undefined;
  return { ...rest, in: place, required, secret, misfit };
}

/** Returns the value of each parameter: `fixed`, else the client's value, else `default`. */
function resolve({ declared }: Prepared, given: Parameters): Values {
  return declared.map((one) => (one.fixed === undefined ? valueIn(one, given) : one.fixed));
}

function requireAll({ declared }: Prepared, values: Values): void {
  const missing = declared.filter(({ required }, index) => required && values[index] === undefined);
  if (missing.length === 0) return;
  const names = [...new Set(missing.map(({ name }) => name))];
  throw new Refusal(400, `Missing required parameter(s): ${names.join(', ')}`);
}

/** Refuses numbers that a double would round: a receipt signs canonical JSON (RFC 8785), whose numbers are doubles. */
function requireExact({ declared, reserved, hasReceipts }: Prepared, given: Parameters, written: Parameters): void {
  if (!hasReceipts || written === given) return;
  const free = declared.flatMap(({ name, fixed }) => (fixed === undefined ? [name] : []));
  const wrong = [...free, ...reserved].find((name) => Object.hasOwn(written, name) && isMarked(written[name] ?? null));
  if (wrong !== undefined) throw new Refusal(400, invalidParameter(wrong, INEXACT));
}

function requireFit({ declared }: Prepared, { values, written }: Resolved): void {
  for (const [index, { name, misfit }] of declared.entries()) {
    const value = values[index];
    const marked = written[index];
    if (value === undefined || marked === undefined || misfit === undefined) continue;
    const why = misfit(marked === value ? value : (parseExact(unmarkedJson(JSON.stringify(marked))) ?? value));
    if (why === undefined) continue;
    // The log does not get `why`, which may contain names that the client has made up.
    throw new Refusal(400, invalidParameter(name, why), { reason: `parameter "${name}" does not fit its schema` });
  }
}

/** Characters of an unknown name that a refusal repeats. */
const NAMED = 64;

function requireKnown({ known }: Prepared, given: Parameters): void {
  const unknown = known && Object.keys(given).find((name) => !known.has(name));
  if (unknown === undefined) return;
  const reason = 'a parameter that the endpoint does not take';
  throw new Refusal(400, `Unknown parameter: ${clipped(unknown, NAMED)}`, { reason });
}

/** Makes the upstream request. @throws Refusal 400 for a value that does not fit its schema or its place */
export function requestOf(prepared: Prepared, resolved: Resolved): OutgoingRequest {
  requireFit(prepared, resolved);
  return prepared.request(resolved.written);
}

/** Returns the parameters that plugins may see and change: neither fixed nor secret. */
function visibleOf({ declared }: Prepared, values: Values): Parameters {
  const seen = declared.flatMap(({ name, fixed, secret }, index): [string, Json][] => {
    const value = values[index];
    return value === undefined || fixed !== undefined || secret ? [] : [[name, value]];
  });
  return Object.freeze(Object.fromEntries(seen));
}

function reservedOf({ reserved }: Prepared, given: Parameters): Parameters {
  const sent = reserved.filter((name) => Object.hasOwn(given, name) && given[name] !== undefined);
  return sent.length === 0 ? none : Object.freeze(Object.fromEntries(sent.map((name) => [name, given[name] ?? null])));
}

const none: Parameters = Object.freeze({});

/** The values of declared parameters, and the same values with all digits that the client wrote, as they go upstream. */
type Resolved = ReturnType<typeof resolvedOf>;

interface Asked extends Pick<Question, 'reserved'>, Pick<Resolved, 'written'> {
  readonly requestHash: Hex | undefined;
  readonly variation: string;
}

/**
 * Returns the key that identifies an answer among all of the same config. Values may be secret and of any length, so the key is a
 * hash: 43 characters of base64url.
 */
function keyOf({ id, reserved: names }: Prepared, { written, variation, reserved, requestHash }: Asked): string {
  // One by one, since a value may be as deep as canonical JSON allows. The empty text stands for no value.
  const texts = written.map((value) => (value === undefined ? '' : canonicalJson(value)));
  const choice = names.length === 0 ? [] : [canonicalJson(reserved)];
  // Unambiguous: these texts hold no line feed, and an endpoint has a fixed number of them. A variation begins with one.
  const input = unmarkedJson([id, ...texts, ...choice, ...(requestHash === undefined ? [] : [requestHash])].join('\n'));
  return hash('sha256', input + variation, 'base64url');
}

/** Returns keccak256 of the UTF-8 text of the canonical JSON (RFC 8785) of `{"parameters": …}`. @throws CanonicalJsonError */
function hashOf(parameters: Parameters): Hex {
  return toHex(keccak256(Buffer.from(jcs({ parameters }), 'utf8')));
}

function hasHash(parameters: Parameters): boolean {
  try {
    return hashOf(parameters) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Returns the hash of a question's parameters, which a receipt signs.
 * @param parameters those that clients may give, defaults filled in.
 * @param names reserved parameters that the endpoint takes; one that was not sent counts as `null`.
 * @throws Refusal 400 for a value that has no canonical JSON, such as one with a lone surrogate.
 */
function requestHashOf(parameters: Parameters, names: readonly string[], reserved: Parameters): Hex {
  const asked = { ...parameters, ...Object.fromEntries(names.map((name) => [name, reserved[name] ?? null])) };
  try {
    return hashOf(asked);
  } catch (cause) {
    if (!(cause instanceof CanonicalJsonError)) throw cause;
    const [name = ''] = Object.entries(asked).find(([key, value]) => !hasHash({ [key]: value })) ?? [];
    const message = names.includes(name) ? `Invalid \`${name}\` request parameter` : invalidParameter(name);
    throw new Refusal(400, message, { reason: cause.message });
  }
}

/** Resolves a request's parameters. @throws Refusal 400 for unknown, missing or inexact ones */
export function resolvedOf(prepared: Prepared, given: Parameters, written: Parameters) {
  requireKnown(prepared, given);
  const values = resolve(prepared, given);
  requireAll(prepared, values);
  requireExact(prepared, given, written);
  return { values, written: written === given ? values : resolve(prepared, written) };
}

/** @throws Refusal 400 */
function questionOf(prepared: Prepared, given: Parameters, variation: string, exchange: Exchange): Question {
  const sent = asWritten(given, exchange);
  const all = resolvedOf(prepared, given, sent);
  const { values, written } = all;
  const request = requestOf(prepared, all);
  const visible = visibleOf(prepared, values);
  const reserved = reservedOf(prepared, given);
  const requestHash = prepared.hasReceipts ? requestHashOf(visible, prepared.reserved, reserved) : undefined;
  return new AskedQuestion({
    parameters: visible,
    reserved,
    request,
    requestHash,
    key: () => keyOf(prepared, { written, variation, reserved: reservedOf(prepared, sent), requestHash }),
    requestFor: (changed) => {
      if (changed === visible) return request;
      const merged = resolve(prepared, changed).map((value, index) =>
        prepared.declared[index]?.secret ? values[index] : value,
      );
      requireAll(prepared, merged);
      const kept = merged.map((value, index) =>
        withDigits(prepared.declared[index]?.name ?? '', { value, before: values[index], marked: written[index] }),
      );
      return requestOf(prepared, { values: merged, written: kept });
    },
  });
}

/** The last question of each parameters object; requests with the same body share one such frozen object. */
const lastQuestions = new WeakMap<Parameters, { readonly prepared: Prepared; readonly question: Question }>();

/** Returns the question of a request. @throws Refusal 400 */
export function questionFor(prepared: Prepared, given: Parameters, variation: string, exchange: Exchange): Question {
  if (variation !== '' || writtenParameters.get(exchange) !== undefined)
    return questionOf(prepared, given, variation, exchange);
  const last = lastQuestions.get(given);
  if (last?.prepared === prepared) return last.question;
  const question = questionOf(prepared, given, variation, exchange);
  lastQuestions.set(given, { prepared, question });
  return question;
}
