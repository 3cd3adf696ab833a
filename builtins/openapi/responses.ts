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
import { Claims, collision, type Said } from './claims.ts';

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

/** One response for all who refuse with its status: their texts, and the headers that they share. */
function shared(
  operation: string,
  status: string,
  [first, ...others]: readonly [Said<DescribedResponse>, ...Said<DescribedResponse>[]],
): DescribedResponse {
  return others.reduce(({ plugin, value }, other) => {
    if (value.errors === undefined || other.value.errors === undefined)
      throw collision(plugin, other.plugin, `response ${status} of ${operation}`);
    const descriptions = [value.description, other.value.description].filter((text) => text !== undefined);
    return {
      plugin: other.plugin,
      value: {
        ...(descriptions.length === 0 ? {} : { description: [...new Set(descriptions)].join('; ') }),
        errors: [...new Set([...value.errors, ...other.value.errors])],
        headers: sharedHeaders(value.headers, other.value.headers),
      },
    };
  }, first).value;
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

/** The responses of operations; those with a name stand among the components, once. */
export class ResponseBook {
  readonly components = new Claims<OpenApiObject>('response');

  /**
   * The Responses Object of an operation.
   * @param operation what it is called where two plugins collide.
   * @throws Error where a response is one that cannot be shared.
   */
  of(operation: string, said: readonly Said<Responses | undefined>[]): OpenApiObject {
    const byStatus = new Map<string, [Said<DescribedResponse>, ...Said<DescribedResponse>[]]>();
    for (const { plugin, value = {} } of said) {
      for (const [status, response] of Object.entries(value)) {
        const one = { plugin, value: response };
        const others = byStatus.get(status);
        if (others === undefined) byStatus.set(status, [one]);
        else others.push(one);
      }
    }
    return Object.fromEntries(
      [...byStatus].map(([status, all]) => {
        const [
          {
            plugin,
            value: { name },
          },
        ] = all;
        const response = rendered(status, shared(operation, status, all));
        if (all.length > 1 || name === undefined) return [status, response];
        this.components.add(plugin, name, response);
        return [status, refTo('responses', name)];
      }),
    );
  }
}
