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
import { type Claims, collision, type Said } from './claims.ts';

/** A Response Object. */
function rendered(status: string, response: DescribedResponse): OpenApiObject {
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

/** The headers of both that a response has whoever refuses, and those that one may send. */
function sharedHeaders(one: Named = {}, other: Named = {}): Named {
  const all = Object.entries({ ...one, ...other });
  const isShared = ([name, { required }]: (typeof all)[number]) =>
    required === false || (Object.hasOwn(one, name) && Object.hasOwn(other, name));
  return Object.fromEntries(all.filter(isShared));
}

/** A mode's responses, with the headers that plugins add to answers; its refusals are none. */
export function withAnswerHeaders(responses: Responses, parts: readonly Said<DescribedOperation>[]): Responses {
  const added: Named = Object.assign({}, ...parts.map(({ value }) => value.answerHeaders));
  const changed = Object.entries(responses).map(([status, response]) => {
    const headers = { ...response.headers, ...added };
    return [status, status.startsWith('2') ? { ...response, headers } : response] as const;
  });
  return Object.fromEntries(changed);
}

/** One response for two who refuse with its status: their texts, and the headers that they share. */
function joined(what: string, one: Said<DescribedResponse>, other: Said<DescribedResponse>): Said<DescribedResponse> {
  const [first, second] = [one.value, other.value];
  if (first.errors === undefined || second.errors === undefined) throw collision(one.plugin, other.plugin, what);
  const descriptions = new Set([first.description, second.description].filter((text) => text !== undefined));
  const value = {
    ...(descriptions.size > 0 && { description: [...descriptions].join('; ') }),
    errors: [...new Set([...first.errors, ...second.errors])],
    headers: sharedHeaders(first.headers, second.headers),
  };
  return { plugin: other.plugin, value };
}

/**
 * The Responses Object of an operation.
 * @param components get those with a name that one plugin describes alone.
 * @param operation what it is called where two plugins collide.
 * @throws Error where a response is one that cannot be shared.
 */
export function responsesOf(
  components: Claims<OpenApiObject>,
  operation: string,
  said: readonly Said<Responses | undefined>[],
): OpenApiObject {
  const byStatus = new Map<string, Said<DescribedResponse>>();
  for (const { plugin, value: responses = {} } of said) {
    for (const [status, value] of Object.entries(responses)) {
      const [one, other] = [byStatus.get(status), { plugin, value }];
      byStatus.set(status, one === undefined ? other : joined(`response ${status} of ${operation}`, one, other));
    }
  }
  const all = [...byStatus].map(([status, { plugin, value }]) => {
    const response = rendered(status, value);
    if (value.name === undefined) return [status, response];
    components.add(plugin, value.name, response);
    return [status, refTo('responses', value.name)];
  });
  return Object.fromEntries(all);
}
