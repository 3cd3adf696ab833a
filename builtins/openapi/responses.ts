import { STATUS_CODES } from 'node:http';
import {
  type DescribedOperation,
  type DescribedResponse,
  type Named,
  nameOf,
  type OpenApiObject,
  type Responses,
  refTo,
} from '../../plugins-sdk/openapi.ts';

/** Makes a Response Object. */
export function rendered(status: string, response: DescribedResponse): OpenApiObject {
  const { description = STATUS_CODES[status] ?? status, errors, schema, mediaType, headers, links } = response;
  const content =
    errors === undefined ? schema && { schema } : { schema: refTo('schemas', 'Error'), examples: examplesOf(errors) };
  return {
    description,
    headers: { 'X-Request-Id': refTo('headers', 'RequestId'), ...headers },
    ...(content && { content: { [mediaType ?? 'application/json']: content } }),
    ...(links && { links }),
  };
}

function examplesOf(errors: readonly string[]): Named {
  return Object.fromEntries(errors.map((error) => [nameOf(error), { value: { error } }]));
}

/** Returns the headers that both responses have, and those that either may send. */
function sharedHeaders(one: Named = {}, other: Named = {}): Named {
  const all = Object.entries({ ...one, ...other });
  const isShared = ([name, { required }]: (typeof all)[number]) =>
    required === false || (Object.hasOwn(one, name) && Object.hasOwn(other, name));
  return Object.fromEntries(all.filter(isShared));
}

/** Adds the headers that plugins set on answers to a mode's successful responses. */
export function withAnswerHeaders(responses: Responses, parts: readonly DescribedOperation[]): Responses {
  const added: Named = Object.assign({}, ...parts.map(({ answerHeaders }) => answerHeaders));
  const changed: Record<string, DescribedResponse> = { ...responses };
  for (const [status, response] of Object.entries(responses))
    if (status.startsWith('2')) changed[status] = { ...response, headers: { ...response.headers, ...added } };
  return changed;
}

/** Joins two refusals with one status: their texts, and the headers that they share. Of other responses the later counts. */
function joined(one: DescribedResponse, other: DescribedResponse): DescribedResponse {
  if (one.errors === undefined || other.errors === undefined) return other;
  const descriptions = new Set([one.description, other.description].filter((text) => text !== undefined));
  return {
    ...(descriptions.size > 0 && { description: [...descriptions].join('; ') }),
    errors: [...new Set([...one.errors, ...other.errors])],
    headers: sharedHeaders(one.headers, other.headers),
  };
}

/** Joins the responses of an operation by status, from all plugins' parts. */
export function joinedResponses(said: readonly (Responses | undefined)[]): Responses {
  const all: Record<string, DescribedResponse> = {};
  for (const [status, other] of said.flatMap((responses = {}) => Object.entries(responses))) {
    const one = all[status];
    all[status] = one === undefined ? other : joined(one, other);
  }
  return all;
}
