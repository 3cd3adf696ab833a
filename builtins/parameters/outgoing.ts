import { isMarked, unmarked, unmarkedJson } from '../../lib/json/numbers.ts';
import { baseUrl, keys } from '../../plugins-sdk/config.ts';
import type { Endpoint, Json, OutgoingRequest, Parameters } from '../../plugins-sdk/index.ts';
import { apiHeaders } from '../shared/api-headers.ts';
import { parametersInPaths } from '../shared/path-parameters.ts';
import {
  compilePlacement,
  type Declared,
  type OnNested,
  parameterText,
  type RequestParts,
  type Values,
} from './placement.ts';

type Headers = OutgoingRequest['headers'];

/**
 * Prepares the headers. Most requests have none from parameters, and share one object.
 * @param own headers of the API. They win over those of parameters, and keep the case of their names.
 * @param bodyType the media type of a body.
 */
function compileHeaders(own: Headers, bodyType: string): (parts: RequestParts) => Headers {
  const merge = ({ headers, cookie, body }: Pick<RequestParts, 'headers' | 'cookie' | 'body'>): Headers => {
    // Of two with one name, in whatever case, the later wins.
    const merged = new Map<string, readonly [name: string, value: string]>();
    const add = (name: string, value: string) => merged.set(name.toLowerCase(), [name, value]);
    add('accept', 'application/json');
    add('user-agent', 'signed-data-proxy');
    if (body !== undefined) add('content-type', bodyType);
    for (const [name, value] of Object.entries({ ...headers, ...own })) add(name, value);
    const [name, ofApi] = merged.get('cookie') ?? ['cookie'];
    // All cookies are sent in one header, together with those of the API.
    if (cookie !== undefined) add(name, [ofApi, cookie].filter(Boolean).join('; '));
    return Object.freeze(Object.fromEntries(merged.values()));
  };
  const bare = merge({ headers: {}, cookie: undefined, body: undefined });
  const withBody = merge({ headers: {}, cookie: undefined, body: '' });
  return (parts) => {
    if (parts.cookie !== undefined || Object.keys(parts.headers).length > 0) return merge(parts);
    return parts.body === undefined ? bare : withBody;
  };
}

/** Returns the values for paths into the answer. Of parameters with one name the first counts. Only a JSON body keeps types. */
function pathValuesOf(declared: readonly Declared[], values: Values, inPaths: ReadonlySet<string>): Parameters {
  const sent = declared.flatMap(({ name, in: place, form }, index): [string, Json][] => {
    const value = values[index];
    if (value === undefined || !inPaths.has(name)) return [];
    if (declared.findIndex((other, at) => other.name === name && values[at] !== undefined) < index) return [];
    if (place !== 'body' || form) return [[name, parameterText(value)]];
    const digits = isMarked(value) && { [`{${name}}`]: unmarkedJson(JSON.stringify(value)) };
    return Object.entries({ [name]: unmarked(value), ...digits });
  });
  return Object.freeze(Object.fromEntries(sent));
}

/** Prepares the upstream request of an endpoint. The returned function takes a value per parameter, and throws Refusal 400. */
export function compileRequest(
  endpoint: Endpoint,
  declared: readonly Declared[],
  onNested: OnNested,
): (values: Values) => OutgoingRequest {
  const template = keys.path.of(endpoint) ?? '';
  const base = baseUrl(endpoint) + (/^([/?]|$)/.test(template) ? '' : '/');
  const method = keys.method.of(endpoint) ?? 'GET';
  const bodyType = `application/${declared.some(({ form }) => form) ? 'x-www-form-urlencoded' : 'json'}`;
  const headersFor = compileHeaders(apiHeaders(endpoint), bodyType);
  const place = compilePlacement(template, declared, onNested);
  const inPaths = parametersInPaths(endpoint);
  return (values) => {
    const parts = place(values);
    const { path, query, body } = parts;
    const tail = query === '' ? '' : `${path.includes('?') ? '&' : '?'}${query}`;
    const request = { method, url: `${base}${path}${tail}`, headers: headersFor(parts), body };
    if (inPaths.size === 0) return Object.freeze(request);
    return Object.freeze({ ...request, pathValues: pathValuesOf(declared, values, inPaths) });
  };
}
